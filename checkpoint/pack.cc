// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pack.h"

#include <fcntl.h>

#include <filesystem>

#include "checkpoint/compressed_file.h"

namespace crane::checkpoint {
namespace {

class Encoder final : public TreeSink {
 public:
  explicit Encoder(CompressedFile& file) : file_(file) {}

  Outcome inode(const std::string& name, const Inode& inode) override {
    begin('i');
    put_text(name);
    put(inode.mode);
    put(inode.uid);
    put(inode.gid);
    put(inode.mtime_ns);
    put(inode.mtime_s);
    put(inode.device);
    put(inode.size);
    put(inode.link);
    put_text(inode.target);
    put(static_cast<std::uint32_t>(inode.attributes.size()));
    for (const auto& [attribute, value] : inode.attributes) {
      put_text(attribute);
      put(static_cast<std::uint32_t>(value.size()));
      record_ += value;
    }
    return flush();
  }
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override {
    begin('d');
    put(offset);
    put(static_cast<std::uint32_t>(bytes.size()));
    if (auto written = flush(); !written) return written;
    return file_.put(bytes.data(), bytes.size());
  }
  Outcome leave() override {
    begin('u');
    return flush();
  }
  Outcome link(const std::string& name, std::uint32_t number) override {
    begin('l');
    put_text(name);
    put(number);
    return flush();
  }
  Outcome end() {
    const std::uint64_t before = records_;
    begin('z');
    put(before);
    return flush();
  }

 private:
  void begin(char type) {
    record_.assign(1, type);
    ++records_;
  }
  template <typename Integer>
  void put(Integer v) {
    record_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void put_text(const std::string& text) {
    put(static_cast<std::uint16_t>(text.size()));
    record_ += text;
  }
  Outcome flush() { return file_.put(record_.data(), record_.size()); }

  CompressedFile& file_;
  std::string record_;
  std::uint64_t records_ = 0;
};

}  // namespace

std::string PackedFile::part() const {
  const std::size_t ending = sizeof kPackEnding - 1;
  return name.size() > ending ? name.substr(0, name.size() - ending) : std::string();
}

Result<PackedFile> pack(const std::string& source, const std::string& target, int level,
                        const OnBytes& on_bytes) {
  Descriptor fd(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return file_error("create", target);
  CompressedFile file(std::move(fd), target, level);
  if (auto put = file.put(kPackMagic, sizeof kPackMagic - 1); !put) return put.error();
  Encoder encoder(file);
  PackedFile packed;
  packed.name = std::filesystem::path(target).filename().string();
  CountingSink counted(encoder, on_bytes);
  if (auto passed = walk(source, packed.part(), counted); !passed) return passed.error();
  if (auto ended = encoder.end(); !ended) return ended.error();
  if (auto ended = file.end(); !ended) return ended.error();
  if (auto synced = file.sync(); !synced) return synced.error();
  packed.bytes = file.bytes();
  packed.crc = file.crc();
  packed.unpacked = file.unpacked();
  return packed;
}

}  // namespace crane::checkpoint
