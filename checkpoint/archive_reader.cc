// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "checkpoint/archive.h"

namespace crane::checkpoint {
namespace {

constexpr std::size_t kHeadMax = 16U << 20;
constexpr std::size_t kHoleUnit = 4096;  // this many zeros become a hole

Error damaged(const std::string& path, const std::string& how) {
  return failure(Code::kDamaged, "read an archive",
                 path + " is damaged (" + how + "); use another copy of it");
}

bool is_clean(const std::string& path) {
  std::size_t at = 0;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (!is_file_name(path.substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

bool is_below(const std::string& path, const std::string& directory) {
  return path.compare(0, directory.size() + 1, directory + "/") == 0;
}

}  // namespace

ArchiveReader::ArchiveReader(Descriptor fd, std::string path)
    : path_(std::move(path)),
      file_(std::make_unique<DecompressedFile>(std::move(fd), path_, damaged)),
      source_([this](void* to, std::size_t size) { return file_->get(to, size); }),
      piece_(kPieceMax) {}
ArchiveReader::ArchiveReader(ByteSource source, std::string path)
    : path_(std::move(path)), source_(std::move(source)), piece_(kPieceMax) {}

Error ArchiveReader::bad(const std::string& how) const { return damaged(path_, how); }

// Reads the next member's headers.  Sets `ended` if there is no further member.
Outcome ArchiveReader::next_member(tar::Header& header, bool& ended) {
  char block[tar::kBlock];
  const auto is_end = [&block] { return is_zero(std::as_bytes(std::span(block))); };
  if (auto got = source_(block, sizeof block); !got) return got;
  if (is_end()) {
    ended = true;
    if (auto got = source_(block, sizeof block); !got) return got;
    return is_end() ? Outcome(Done{}) : bad("an invalid end");
  }
  const auto pax = tar::decode(block);
  if (!pax || pax->kind != 'x' || pax->size > tar::kPaxMax) return bad("an invalid header");
  std::string records(pax->size + tar::padding_of(pax->size), '\0');
  if (auto got = source_(records.data(), records.size()); !got) return got;
  records.resize(pax->size);
  if (auto got = source_(block, sizeof block); !got) return got;
  auto plain = tar::decode(block);
  if (!plain || plain->kind == 'x' || !tar::apply(records, *plain)) return bad("an invalid header");
  header = std::move(*plain);
  std::string& path = header.member.path;
  Inode& inode = header.member.inode;
  if (S_ISDIR(inode.mode) && path.ends_with('/')) path.pop_back();
  if (!is_clean(path)) return bad("an invalid name");
  const bool is_file = S_ISREG(inode.mode) && !header.member.is_link;
  if (header.size > INT64_MAX || (!is_file && header.size != 0)) return bad("an invalid size");
  if (S_ISLNK(inode.mode) != !inode.target.empty() || inode.mtime_ns >= 1'000'000'000 ||
      inode.target.find('\0') != std::string::npos) {
    return bad("an invalid link target or time");
  }
  inode.size = header.size;
  return Done{};
}

Result<std::string> ArchiveReader::head(const std::string& name) {
  tar::Header header;
  bool ended = false;
  const auto got = next_member(header, ended);
  const bool was_one = file_ != nullptr && file_->is_cut_or_changed();
  if (!got && (got.error().code != Code::kDamaged || was_one)) return got.error();
  if (!got || ended || header.member.path != name || !S_ISREG(header.member.inode.mode) ||
      header.size > kHeadMax) {
    return failure(Code::kBadArgument, "read an archive",
                   path_ + " does not begin with " + name + " in a tar archive within zstd");
  }
  std::string text(header.size + tar::padding_of(header.size), '\0');
  if (auto read = source_(text.data(), text.size()); !read) return read.error();
  text.resize(header.size);
  return text;
}

// Leaves the open directories that do not contain `path`.
Outcome ArchiveReader::leave_to(const std::string& path, TreeSink& sink) {
  while (!open_.empty() && !is_below(path, open_.back())) {
    if (auto left = sink.leave(); !left) return left;
    open_.pop_back();
  }
  return Done{};
}

Outcome ArchiveReader::read_content(std::uint64_t size, TreeSink& sink) {
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t length = std::min<std::uint64_t>(piece_.size(), size - at);
    if (auto got = source_(piece_.data(), length); !got) return got;
    const std::span<const std::byte> all(piece_.data(), length);
    std::size_t from = 0;  // start of the next run without a hole
    for (std::size_t unit = 0; unit < length; unit += kHoleUnit) {
      const std::size_t end = std::min(unit + kHoleUnit, length);
      const bool hole = is_zero(all.subspan(unit, end - unit));
      const std::size_t to = hole ? unit : end;
      if ((hole || end == length) && to > from) {
        if (auto passed = sink.data(at + from, all.subspan(from, to - from)); !passed)
          return passed;
      }
      if (hole) from = end;
    }
    at += length;
  }
  return source_(piece_.data(), tar::padding_of(size));
}

Outcome ArchiveReader::read_member(TreeSink& sink, bool& ended) {
  tar::Header header;
  if (auto got = next_member(header, ended); !got) return got;
  if (ended) return Done{};
  const std::string& path = header.member.path;
  const Inode& inode = header.member.inode;
  if (auto left = leave_to(path, sink); !left) return left;
  const std::string name = open_.empty() ? path : path.substr(open_.back().size() + 1);
  if (!open_.empty() && name.find('/') != std::string::npos) {
    return bad(path + " is in a directory that is missing");
  }
  if (header.member.is_link) {
    const auto first = links_.find(header.member.first);
    if (first == links_.end() || open_.empty()) return bad(path + " is a link to a missing file");
    return sink.link(name, first->second);
  }
  if (inode.link != 0) {
    if (S_ISDIR(inode.mode) || inode.link != links_.size() + 1)
      return bad("an invalid link number");
    links_[path] = inode.link;
  }
  if (S_ISDIR(inode.mode)) {
    if (open_.size() >= kDepthMax) return bad(path + " is nested too deeply");
    open_.push_back(path);
    return sink.inode(name, inode);
  }
  if (auto passed = sink.inode(name, inode); !passed) return passed;
  if (!S_ISREG(inode.mode)) return Done{};
  if (auto passed = read_content(inode.size, sink); !passed) return passed;
  return sink.leave();
}

Outcome ArchiveReader::read(TreeSink& sink) {
  for (bool ended = false;;) {
    if (auto passed = read_member(sink, ended); !passed) return passed;
    if (!ended) continue;
    if (auto left = leave_to("", sink); !left) return left;
    return file_ ? file_->finish() : Done{};
  }
}

}  // namespace crane::checkpoint
