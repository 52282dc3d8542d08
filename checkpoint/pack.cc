// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pack.h"

#include <fcntl.h>
#include <zstd.h>

#include <filesystem>
#include <memory>

#include "checkpoint/fault_points.h"
#include "checkpoint/pack_format.h"
#include "dmt/base/crc.h"

namespace crane::checkpoint {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};

// Compresses into a file.  After an error all that follows is that error.
class PackFile {
 public:
  PackFile(const std::string& path, int level)
      : path_(path), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
    CRANE_ASSERT(context_ != nullptr);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }
  Outcome create() {
    fd_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd_) return file_error("create", path_);
    return Done{};
  }
  Outcome put(const void* data, std::size_t size) { return compress(data, size, ZSTD_e_continue); }
  Outcome finish() {
    if (auto ended = compress(nullptr, 0, ZSTD_e_end); !ended) return ended;
    if (::fsync(fd_.get()) != 0) return file_error("sync", path_);
    return Done{};
  }
  std::uint64_t bytes = 0, unpacked = 0;
  std::uint32_t crc = 0;

 private:
  Outcome compress(const void* data, std::size_t size, ZSTD_EndDirective directive) {
    unpacked += size;
    ZSTD_inBuffer in{data, size, 0};
    for (;;) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (ZSTD_isError(left) != 0) {
        return failure(Code::kSystem, "compress",
                       "cannot compress " + path_ + ": " + ZSTD_getErrorName(left));
      }
      if (out.pos > 0) {
        if (!write_all(fd_.get(), out_.data(), out.pos)) return file_error("write", path_);
        crc = crc32c(out_.data(), out.pos, crc);
        bytes += out.pos;
        fault_point("publish.part");
      }
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return Done{};
    }
  }

  const std::string path_;
  std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
  std::vector<char> out_;
  Descriptor fd_;
};

class Encoder final : public TreeSink {
 public:
  explicit Encoder(PackFile& file) : file_(file) {}

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

  PackFile& file_;
  std::string record_;
  std::uint64_t records_ = 0;
};

}  // namespace

std::string PackedFile::part() const {
  const std::size_t ending = sizeof kPackEnding - 1;
  return name.size() > ending ? name.substr(0, name.size() - ending) : std::string();
}

Result<PackedFile> pack(const std::string& source, const std::string& target, int level) {
  PackFile file(target, level);
  if (auto made = file.create(); !made) return made.error();
  if (auto put = file.put(kPackMagic, sizeof kPackMagic - 1); !put) return put.error();
  Encoder encoder(file);
  PackedFile packed;
  packed.name = std::filesystem::path(target).filename().string();
  if (auto told = walk(source, packed.part(), encoder); !told) return told.error();
  if (auto ended = encoder.end(); !ended) return ended.error();
  if (auto ended = file.finish(); !ended) return ended.error();
  packed.bytes = file.bytes;
  packed.crc = file.crc;
  packed.unpacked = file.unpacked;
  return packed;
}

}  // namespace crane::checkpoint
