// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include "checkpoint/compressed_file.h"
#include "checkpoint/pack.h"

namespace crane::checkpoint {
namespace {

Error damaged(const std::string& path, const std::string& how) {
  return failure(Code::kDamaged, "read a pack",
                 path + " is damaged (" + how + "); use another checkpoint, or another replica's");
}

Result<Descriptor> open_pack(const std::string& path, const PackedFile& expected) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return damaged(path, "it is missing");
  if (!fd) return file_error("open", path);
  struct stat s {};
  if (::fstat(fd.get(), &s) != 0) return file_error("look at", path);
  if (static_cast<std::uint64_t>(s.st_size) == expected.bytes) return fd;
  return damaged(path, "it has " + std::to_string(s.st_size) + " bytes instead of " +
                           std::to_string(expected.bytes));
}

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

  Outcome record(char type);
  Outcome inode();
  Outcome attributes(Inode& inode);
  Outcome data();
  Outcome link();
  Outcome bad(const std::string& how) { return damaged(path_, how); }
  bool in_file() const { return !levels_.empty() && levels_.back().kind == Kind::kFile; }
  bool is_valid_name(const std::string& name) const;
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
    if (auto done = record(type); !done) return done;
  }
  std::uint64_t records = 0;
  if (auto got = get(records); !got) return got;
  if (records != records_ || !levels_.empty() || !seen_top_) return bad("something is missing");
  return Done{};
}

Outcome Decoder::record(char type) {
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

bool Decoder::is_valid_name(const std::string& name) const {
  if (levels_.empty()) return !seen_top_ && name == part_;
  return !in_file() && is_file_name(name);
}

Outcome Decoder::inode() {
  Inode i;
  std::string name;
  if (auto got = get_text(name); !got) return got;
  if (!is_valid_name(name)) return bad("an invalid name");
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
  if (levels_.empty() || !is_valid_name(name)) return bad("an invalid name");
  if (number == 0 || number > links_) return bad("a link to a missing file");
  return sink_.link(name, number);
}

}  // namespace

Outcome decode(const ByteSource& source, const std::string& part, const std::string& path,
               TreeSink& sink) {
  return Decoder(source, part, path, sink).run();
}

Outcome read_pack(const std::string& path, const PackedFile& expected, TreeSink& sink) {
  auto fd = open_pack(path, expected);
  if (!fd) return fd.error();
  DecompressedFile file(std::move(fd).value(), path, damaged);
  std::uint64_t left = expected.unpacked;
  const ByteSource source = [&](void* to, std::size_t size) -> Outcome {
    if (size > left) return damaged(path, "it unpacks to more");
    left -= size;
    return file.get(to, size);
  };
  if (auto read = decode(source, expected.part(), path, sink); !read) return read;
  if (left > 0) return damaged(path, "it unpacks to less");
  if (auto ended = file.finish("it unpacks to more"); !ended) return ended;
  if (file.crc() != expected.crc) return damaged(path, "its checksum differs");
  return Done{};
}

}  // namespace crane::checkpoint
