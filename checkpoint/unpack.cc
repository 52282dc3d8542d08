// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cstring>
#include <memory>

#include "checkpoint/pack.h"
#include "checkpoint/pack_format.h"
#include "dmt/base/crc.h"

namespace crane::checkpoint {
namespace {

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

Error damaged(const std::string& path, const std::string& how) {
  return failure(Code::kDamaged, "read a pack",
                 path + " is damaged (" + how + "); use another checkpoint, or another replica's");
}

// Decompresses a file and computes its checksum.
class Unpacking {
 public:
  Unpacking(const std::string& path, const PackedFile& expected)
      : path_(path), expected_(expected), context_(ZSTD_createDCtx()), in_(ZSTD_DStreamInSize()) {
    CRANE_ASSERT(context_ != nullptr);
  }
  Outcome open() {
    fd_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd_ && errno == ENOENT) return damaged(path_, "it is missing");
    if (!fd_) return file_error("open", path_);
    struct stat s {};
    if (::fstat(fd_.get(), &s) != 0) return file_error("look at", path_);
    if (static_cast<std::uint64_t>(s.st_size) != expected_.bytes) {
      return damaged(path_, "it has " + std::to_string(s.st_size) + " bytes instead of " +
                                std::to_string(expected_.bytes));
    }
    return Done{};
  }
  // Exactly `size` bytes.
  Outcome get(void* to, std::size_t size) {
    if (size > expected_.unpacked - unpacked_) return damaged(path_, "it unpacks to more");
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos < out.size) {
      if (auto moved = step(out); !moved) return moved;
    }
    unpacked_ += size;
    return Done{};
  }
  // Call it after the last byte: the file must end there, with the expected size and checksum.
  Outcome finish() {
    if (unpacked_ != expected_.unpacked) return damaged(path_, "it unpacks to less");
    char more;
    ZSTD_outBuffer out{&more, 1, 0};
    while (!frame_ended_) {
      if (auto moved = step(out); !moved) return moved;
      if (out.pos > 0) return damaged(path_, "it unpacks to more");
    }
    if (input_.pos != input_.size || bytes_ != expected_.bytes) {
      return damaged(path_, "bytes follow its end");
    }
    if (crc_ != expected_.crc) return damaged(path_, "its checksum differs");
    return Done{};
  }

 private:
  Outcome step(ZSTD_outBuffer& out) {
    if (frame_ended_) return damaged(path_, "it ends early");
    if (input_.pos == input_.size && !in_ended_) {
      const ssize_t n = read_all(fd_.get(), in_.data(), in_.size());
      if (n < 0) return file_error("read", path_);
      const auto got = static_cast<std::size_t>(n);
      in_ended_ = got < in_.size();
      crc_ = crc32c(in_.data(), got, crc_);
      bytes_ += got;
      input_ = {in_.data(), got, 0};
    }
    const std::size_t had = out.pos, took = input_.pos;
    const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &input_);
    if (ZSTD_isError(left) != 0) return damaged(path_, ZSTD_getErrorName(left));
    frame_ended_ = left == 0;
    if (!frame_ended_ && in_ended_ && out.pos == had && input_.pos == took) {
      return damaged(path_, "it ends early");
    }
    return Done{};
  }

  const std::string path_;
  const PackedFile& expected_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::vector<char> in_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  Descriptor fd_;
  std::uint64_t bytes_ = 0, unpacked_ = 0;
  std::uint32_t crc_ = 0;
  bool in_ended_ = false, frame_ended_ = false;
};

// Turns bytes into events, and rejects those that a tree cannot have.
class Decoder {
 public:
  Decoder(const ByteSource& source, const std::string& part, const std::string& path,
          TreeSink& sink)
      : source_(source), part_(part), path_(path), sink_(sink) {}
  Outcome run();

 private:
  enum class Kind : std::uint8_t { kDirectory, kFile };
  struct Level {
    Kind kind;
    std::uint64_t at = 0, size = 0;  // for a file: the end of its last piece, and its size
  };

  Outcome one(char type);
  Outcome inode();
  Outcome attributes(Inode& inode);
  Outcome data();
  Outcome link();
  Outcome bad(const std::string& how) { return damaged(path_, how); }
  bool in_file() const { return !levels_.empty() && levels_.back().kind == Kind::kFile; }
  bool may_stand_here(const std::string& name) const;
  template <typename Integer>
  Outcome get(Integer& v) {
    return source_(&v, sizeof v);
  }
  Outcome get_text(std::string& text, std::size_t size) {
    text.resize(size);
    return source_(text.data(), size);
  }
  Outcome get_text(std::string& text) {
    std::uint16_t size = 0;
    if (auto got = get(size); !got) return got;
    return get_text(text, size);
  }

  const ByteSource& source_;
  const std::string& part_;
  const std::string& path_;
  TreeSink& sink_;
  std::vector<Level> levels_;
  std::vector<std::byte> piece_;
  std::uint32_t links_ = 0;
  std::uint64_t records_ = 0;
  bool seen_top_ = false;
};

Outcome Decoder::run() {
  std::string magic;
  if (auto got = get_text(magic, sizeof kPackMagic - 1); !got) return got;
  if (magic != kPackMagic) return bad("it does not begin like a pack");
  for (;; ++records_) {
    char type = 0;
    if (auto got = get(type); !got) return got;
    if (type == 'z') break;
    if (auto done = one(type); !done) return done;
  }
  std::uint64_t records = 0;
  if (auto got = get(records); !got) return got;
  if (records != records_ || !levels_.empty() || !seen_top_) return bad("something is missing");
  return Done{};
}

Outcome Decoder::one(char type) {
  switch (type) {
    case 'i':
      return inode();
    case 'd':
      return data();
    case 'l':
      return link();
    case 'u':
      if (levels_.empty()) return bad("an end without a beginning");
      levels_.pop_back();
      return sink_.leave();
    default:
      return bad("an unknown record");
  }
}

bool Decoder::may_stand_here(const std::string& name) const {
  if (levels_.empty()) return !seen_top_ && name == part_;
  return !in_file() && !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

Outcome Decoder::inode() {
  Inode i;
  std::string name;
  if (auto got = get_text(name); !got) return got;
  if (!may_stand_here(name)) return bad("an invalid name");
  seen_top_ = true;
  for (std::uint32_t* field : {&i.mode, &i.uid, &i.gid, &i.mtime_ns}) {
    if (auto got = get(*field); !got) return got;
  }
  if (auto got = get(i.mtime_s); !got) return got;
  if (auto got = get(i.device); !got) return got;
  if (auto got = get(i.size); !got) return got;
  if (auto got = get(i.link); !got) return got;
  if (auto got = get_text(i.target); !got) return got;
  if (auto got = attributes(i); !got) return got;
  const std::uint32_t type = i.mode & S_IFMT;
  const bool is_node = type == S_IFCHR || type == S_IFBLK || type == S_IFIFO || type == S_IFSOCK;
  if (!is_node && type != S_IFDIR && type != S_IFREG && type != S_IFLNK)
    return bad("an invalid file type");
  if (i.mtime_ns >= 1'000'000'000 || i.size > INT64_MAX) return bad("an invalid time or size");
  if ((type == S_IFLNK) != !i.target.empty() || i.target.find('\0') != std::string::npos) {
    return bad("an invalid link target");
  }
  if (i.link != 0 && (type == S_IFDIR || i.link != ++links_)) return bad("an invalid link number");
  if (levels_.size() > kDepthMax) return bad("it is nested too deeply");
  if (type == S_IFDIR) levels_.push_back({Kind::kDirectory});
  if (type == S_IFREG) levels_.push_back({Kind::kFile, 0, i.size});
  return sink_.inode(name, i);
}

Outcome Decoder::attributes(Inode& inode) {
  std::uint32_t count = 0;
  if (auto got = get(count); !got) return got;
  std::size_t total = 0;
  for (std::uint32_t n = 0; n < count; ++n) {
    auto& [name, value] = inode.attributes.emplace_back();
    if (auto got = get_text(name); !got) return got;
    std::uint32_t size = 0;
    if (auto got = get(size); !got) return got;
    total += name.size() + size + 1;
    if (name.empty() || name.find('\0') != std::string::npos || total > kAttributesMax) {
      return bad("an invalid attribute");
    }
    if (auto got = get_text(value, size); !got) return got;
  }
  return Done{};
}

Outcome Decoder::data() {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  if (auto got = get(offset); !got) return got;
  if (auto got = get(size); !got) return got;
  if (!in_file()) return bad("data without a file");
  Level& file = levels_.back();
  if (size == 0 || size > kPieceMax || offset < file.at || offset > file.size ||
      size > file.size - offset) {
    return bad("data outside its file");
  }
  piece_.resize(size);
  if (auto got = source_(piece_.data(), size); !got) return got;
  file.at = offset + size;
  return sink_.data(offset, piece_);
}

Outcome Decoder::link() {
  std::string name;
  std::uint32_t number = 0;
  if (auto got = get_text(name); !got) return got;
  if (auto got = get(number); !got) return got;
  if (levels_.empty() || !may_stand_here(name)) return bad("an invalid name");
  if (number == 0 || number > links_) return bad("a link to a missing file");
  return sink_.link(name, number);
}

}  // namespace

Outcome decode(const ByteSource& source, const std::string& part, const std::string& path,
               TreeSink& sink) {
  return Decoder(source, part, path, sink).run();
}

Outcome read_pack(const std::string& path, const PackedFile& expected, TreeSink& sink) {
  Unpacking file(path, expected);
  if (auto opened = file.open(); !opened) return opened;
  const ByteSource source = [&](void* to, std::size_t size) { return file.get(to, size); };
  if (auto read = decode(source, expected.part(), path, sink); !read) return read;
  return file.finish();
}

}  // namespace crane::checkpoint
