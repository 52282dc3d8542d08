// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/archive.h"

#include <sys/stat.h>

#include <algorithm>

namespace crane::checkpoint {
namespace {

constexpr int kLevel = 3;  // of zstd; slow is acceptable for a file that is kept or sent
const std::string kZeros(1 << 16, '\0');

}  // namespace

ArchiveWriter::ArchiveWriter(Descriptor fd, const std::string& path)
    : file_(std::move(fd), path, kLevel) {}

std::string ArchiveWriter::path_of(const std::string& name) const {
  return open_.empty() ? name : open_.back() + "/" + name;
}

Outcome ArchiveWriter::head(const std::string& name, const std::string& text) {
  Inode inode;
  inode.mode = S_IFREG | 0600;
  inode.size = text.size();
  if (auto passed = this->inode(name, inode); !passed) return passed;
  const auto bytes = std::as_bytes(std::span(text));
  if (auto passed = data(0, bytes); !passed) return passed;
  return leave();
}

Outcome ArchiveWriter::inode(const std::string& name, const Inode& inode) {
  const std::string path = path_of(name);
  if (S_ISSOCK(inode.mode)) {
    return failure(Code::kUnsupported, "archive",
                   path + " is a socket, which an archive cannot contain");
  }
  if (inode.link != 0) links_[inode.link] = path;
  const std::string headers = tar::encode({path, inode, false, ""});
  if (S_ISDIR(inode.mode) || S_ISREG(inode.mode)) open_.push_back(path);
  in_file_ = S_ISREG(inode.mode);
  at_ = 0;
  size_ = inode.size;
  return file_.put(headers.data(), headers.size());
}

Outcome ArchiveWriter::zeros_to(std::uint64_t end) {
  while (at_ < end) {
    const std::size_t size = std::min<std::uint64_t>(kZeros.size(), end - at_);
    if (auto put = file_.put(kZeros.data(), size); !put) return put;
    at_ += size;
  }
  return Done{};
}

Outcome ArchiveWriter::data(std::uint64_t offset, std::span<const std::byte> bytes) {
  CRANE_ASSERT(in_file_ && offset >= at_ && offset + bytes.size() <= size_);
  if (auto put = zeros_to(offset); !put) return put;
  at_ += bytes.size();
  return file_.put(bytes.data(), bytes.size());
}

Outcome ArchiveWriter::leave() {
  open_.pop_back();
  if (!in_file_) return Done{};
  in_file_ = false;
  if (auto put = zeros_to(size_); !put) return put;
  return file_.put(kZeros.data(), tar::padding_of(size_));
}

Outcome ArchiveWriter::link(const std::string& name, std::uint32_t number) {
  const auto first = links_.find(number);
  CRANE_ASSERT(first != links_.end());
  tar::Member member{path_of(name), {}, true, first->second};
  member.inode.mode = S_IFREG | 0600;
  const std::string headers = tar::encode(member);
  return file_.put(headers.data(), headers.size());
}

Outcome ArchiveWriter::finish(bool synced) {
  if (auto put = file_.put(kZeros.data(), 2 * tar::kBlock); !put) return put;
  if (auto ended = file_.end(); !ended) return ended;
  return synced ? file_.sync() : Done{};
}

}  // namespace crane::checkpoint
