// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "checkpoint/archive.h"
#include "checkpoint/tar_format.h"

namespace crane::checkpoint {
namespace {

constexpr std::size_t kHeadMax = 16U << 20;
constexpr std::size_t kHoleUnit = 4096;  // this many zeros become a hole

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

Error damaged(const std::string& path, const std::string& how) {
  return failure(Code::kDamaged, "read an archive",
                 path + " is damaged (" + how + "); use another copy of it");
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

bool is_clean(const std::string& path) {
  std::size_t at = 0;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part.empty() || part.size() > 255 || part == "." || part == "..") return false;
    at = end + 1;
  }
  return path.find('\0') == std::string::npos;
}

bool is_below(const std::string& path, const std::string& directory) {
  return path.compare(0, directory.size() + 1, directory + "/") == 0;
}

}  // namespace

struct ArchiveMember {
  tar::Header header;
  std::string name;  // the whole path, without a final slash
};

// The decompressed bytes, in order.
class ArchiveReader::Stream {
 public:
  Stream(Descriptor fd, const std::string& path)
      : fd_(std::move(fd)), path_(path), context_(ZSTD_createDCtx()), in_(ZSTD_DStreamInSize()) {
    CRANE_ASSERT(context_ != nullptr);
  }
  Outcome get(void* to, std::size_t size) {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos < out.size) {
      if (ended_) return damaged("it ends early");
      if (auto moved = step(out); !moved) return moved;
    }
    return Done{};
  }
  // Whether reading has failed although the file begins as zstd's do: it was one once.
  bool is_cut_or_changed() const { return begins_well_ && failed_; }
  // Call it after the last byte: nothing may follow.
  Outcome finish() {
    char more;
    ZSTD_outBuffer out{&more, 1, 0};
    while (!ended_) {
      if (auto moved = step(out); !moved) return moved;
      if (out.pos > 0) return damaged("bytes follow its end");
    }
    if (input_.pos != input_.size || read_all(fd_.get(), &more, 1) != 0) {
      return damaged("bytes follow its end");
    }
    return Done{};
  }

 private:
  Error damaged(const std::string& how) const { return crane::checkpoint::damaged(path_, how); }
  Outcome step(ZSTD_outBuffer& out) {
    if (input_.pos == input_.size) {
      const ssize_t n = read_all(fd_.get(), in_.data(), in_.size());
      if (n < 0) return file_error("read", path_);
      if (std::exchange(first_, false)) begins_well_ = begins_as_zstd(static_cast<std::size_t>(n));
      input_ = {in_.data(), static_cast<std::size_t>(n), 0};
    }
    const std::size_t had = out.pos, took = input_.pos;
    const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &input_);
    failed_ = ZSTD_isError(left) != 0;
    if (failed_) return damaged(ZSTD_getErrorName(left));
    ended_ = left == 0;
    failed_ = !ended_ && out.pos == had && input_.pos == took;
    if (failed_) return damaged("it ends early");
    return Done{};
  }
  // The first bytes of every frame of zstd; a file that was cut may have fewer.
  bool begins_as_zstd(std::size_t size) const {
    constexpr unsigned char kMagic[] = {0x28, 0xb5, 0x2f, 0xfd};
    return std::memcmp(in_.data(), kMagic, std::min(size, sizeof kMagic)) == 0;
  }

  Descriptor fd_;
  const std::string& path_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::vector<char> in_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool ended_ = false, first_ = true, begins_well_ = false, failed_ = false;
};

ArchiveReader::ArchiveReader(Descriptor fd, std::string path)
    : path_(std::move(path)),
      stream_(std::make_unique<Stream>(std::move(fd), path_)),
      source_([this](void* to, std::size_t size) { return stream_->get(to, size); }),
      piece_(kPieceMax) {}
ArchiveReader::ArchiveReader(ByteSource source, std::string path)
    : path_(std::move(path)), source_(std::move(source)), piece_(kPieceMax) {}
ArchiveReader::~ArchiveReader() = default;

Error ArchiveReader::bad(const std::string& how) const { return damaged(path_, how); }

// Reads the next member's headers; `ended`: there is none.
Outcome ArchiveReader::next_member(ArchiveMember& member, bool& ended) {
  char block[tar::kBlock];
  const auto is_end = [&block] { return is_zero(std::as_bytes(std::span(block))); };
  if (auto got = source_(block, sizeof block); !got) return got;
  if (is_end()) {
    ended = true;
    if (auto got = source_(block, sizeof block); !got) return got;
    return is_end() ? Outcome(Done{}) : bad("an invalid end");
  }
  auto pax = tar::decode(block);
  if (!pax || pax->kind != 'x' || pax->size > tar::kPaxMax) return bad("an invalid header");
  std::string records((pax->size + tar::kBlock - 1) / tar::kBlock * tar::kBlock, '\0');
  if (auto got = source_(records.data(), records.size()); !got) return got;
  records.resize(pax->size);
  if (auto got = source_(block, sizeof block); !got) return got;
  auto header = tar::decode(block);
  if (!header || header->kind == 'x' || !tar::apply(records, *header))
    return bad("an invalid header");
  member.header = std::move(*header);
  member.name = member.header.member.path;
  Inode& inode = member.header.member.inode;
  if (S_ISDIR(inode.mode) && member.name.back() == '/') member.name.pop_back();
  const bool is_file = S_ISREG(inode.mode) && !member.header.member.is_link;
  if (!is_clean(member.name)) return bad("an invalid name");
  if (member.header.size > INT64_MAX || (!is_file && member.header.size != 0))
    return bad("an invalid size");
  if (S_ISLNK(inode.mode) != !inode.target.empty() || inode.mtime_ns >= 1'000'000'000 ||
      inode.target.find('\0') != std::string::npos) {
    return bad("an invalid link target or time");
  }
  inode.size = is_file ? member.header.size : 0;
  return Done{};
}

Result<std::string> ArchiveReader::head(const std::string& name) {
  ArchiveMember member;
  bool ended = false;
  auto got = next_member(member, ended);
  const bool is_ours = got && !ended && member.name == name &&
                       S_ISREG(member.header.member.inode.mode) && member.header.size <= kHeadMax;
  const bool was_one = stream_ != nullptr && stream_->is_cut_or_changed();
  if (!got && (got.error().code != Code::kDamaged || was_one)) return got.error();
  if (!is_ours) {
    return failure(Code::kBadArgument, "read an archive",
                   path_ + " does not begin with " + name + " in a tar archive within zstd");
  }
  std::string text(member.header.size, '\0');
  const std::size_t padding = (tar::kBlock - text.size() % tar::kBlock) % tar::kBlock;
  char rest[tar::kBlock];
  if (auto read = source_(text.data(), text.size()); !read) return read.error();
  if (auto read = source_(rest, padding); !read) return read.error();
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

Outcome ArchiveReader::bytes_of(std::uint64_t size, TreeSink& sink) {
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
        if (auto told = sink.data(at + from, all.subspan(from, to - from)); !told) return told;
      }
      if (hole) from = end;
    }
    at += length;
  }
  const std::size_t padding = (tar::kBlock - size % tar::kBlock) % tar::kBlock;
  return source_(piece_.data(), padding);
}

Outcome ArchiveReader::one(TreeSink& sink, bool& ended) {
  ArchiveMember member;
  if (auto got = next_member(member, ended); !got) return got;
  if (ended) return Done{};
  const std::string& path = member.name;
  const Inode& inode = member.header.member.inode;
  if (auto left = leave_to(path, sink); !left) return left;
  const std::string name = open_.empty() ? path : path.substr(open_.back().size() + 1);
  if (!open_.empty() && name.find('/') != std::string::npos) {
    return bad(path + " is in a directory that is missing");
  }
  if (member.header.member.is_link) {
    const auto first = links_.find(member.header.member.first);
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
  if (auto told = sink.inode(name, inode); !told) return told;
  if (!S_ISREG(inode.mode)) return Done{};
  if (auto told = bytes_of(inode.size, sink); !told) return told;
  return sink.leave();
}

Outcome ArchiveReader::read(TreeSink& sink) {
  for (bool ended = false;;) {
    if (auto told = one(sink, ended); !told) return told;
    if (!ended) continue;
    if (auto left = leave_to("", sink); !left) return left;
    return stream_ ? stream_->finish() : Done{};
  }
}

}  // namespace crane::checkpoint
