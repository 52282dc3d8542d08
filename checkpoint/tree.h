// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tree of files as an exact stream of events.  A reader of a tree (walk) or a pack (pack.h)
// passes the events to a sink, which makes files (Extractor) or a pack.  So a copy, a pack and its
// unpacking cannot disagree about what belongs to a file.
//
// Kept: type, mode with its special bits, owner, group, mtime in ns, hard links within the tree,
// every extended attribute (trusted.overlay.*, capabilities, ACLs), device numbers (an overlay's
// whiteouts are 0:0), FIFOs, sockets, holes.  Not kept: atime and ctime, flags of chattr, hard
// links to files outside the tree.  At most kDepthMax directories deep.
//
// Threads: one object, one thread.  All calls may block for as long as the disk does.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

inline constexpr std::size_t kDepthMax = 400;      // each level costs a descriptor
inline constexpr std::size_t kPieceMax = 1 << 18;  // bytes of one data()
inline constexpr std::size_t kAttributesMax = 1 << 22;

struct Inode {
  std::uint32_t mode = 0;  // with the type, as stat gives it
  std::uint32_t uid = 0, gid = 0;
  std::uint32_t mtime_ns = 0;
  std::int64_t mtime_s = 0;
  std::uint64_t device = 0;  // for device nodes
  std::uint64_t size = 0;    // for regular files
  std::uint32_t link = 0;    // number within this stream, from 1; 0: only one name
  std::string target;        // for symbolic links
  std::vector<std::pair<std::string, std::string>> attributes;  // extended, sorted by name
};

// Whether a directory can contain an entry of this name.
bool is_file_name(const std::string& name);
// Whether all bytes are zero: a hole can replace them.
bool is_zero(std::span<const std::byte> bytes);

class TreeSink {
 public:
  virtual ~TreeSink() = default;
  // A new inode.  For a directory, its content follows, then leave().  For a regular file, its data
  // follows, in ascending pieces of at most kPieceMax that do not overlap, then leave().  Bytes
  // that data() omits are a hole.
  virtual Outcome inode(const std::string& name, const Inode& inode) = 0;
  virtual Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual Outcome leave() = 0;
  // One more name of the inode with this number.
  virtual Outcome link(const std::string& name, std::uint32_t number) = 0;
};

// Passes every event on, and reports the number of bytes of each piece of a file.
using OnBytes = std::function<void(std::uint64_t bytes)>;
class CountingSink final : public TreeSink {
 public:
  CountingSink(TreeSink& to, const OnBytes& on_bytes) : to_(to), on_bytes_(on_bytes) {}
  Outcome inode(const std::string& name, const Inode& inode) override {
    return to_.inode(name, inode);
  }
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (on_bytes_) on_bytes_(bytes.size());
    return to_.data(offset, bytes);
  }
  Outcome leave() override { return to_.leave(); }
  Outcome link(const std::string& name, std::uint32_t number) override {
    return to_.link(name, number);
  }

 private:
  TreeSink& to_;
  const OnBytes& on_bytes_;
};

// Passes the file or directory at `path` to `sink`, under the name `name`; names in a directory
// come sorted.  No process may change it meanwhile: a file that ends early is kDamaged.
Outcome walk(const std::string& path, const std::string& name, TreeSink& sink);

// Makes the tree within the directory `parent`, where none of its names may exist.
class Extractor final : public TreeSink {
 public:
  Extractor(std::string parent) : parent_(std::move(parent)) {}

  Outcome inode(const std::string& name, const Inode& inode) override;
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Outcome leave() override;
  Outcome link(const std::string& name, std::uint32_t number) override;

 private:
  struct Open {
    Descriptor fd;
    Inode inode;
    std::string name, path;
    std::uint64_t end = 0;  // for a file: the end of its last piece
  };
  Result<int> directory();
  std::string path_of(const std::string& name) const;
  Outcome make_special(int directory, const std::string& name, const Inode& inode);
  Outcome set_attributes(const std::string& name, const Inode& inode);

  std::string parent_;
  Descriptor root_;
  std::vector<Open> open_;  // directories, and possibly a file at the end
  std::unordered_map<std::uint32_t, std::string> links_;  // number -> path
};

// Bytes of a file.
struct FileRange {
  std::uint64_t from = 0, to = 0;
};

// Makes an exact copy of the file or directory `from` as `to`, which must not exist.  `left_out`:
// ranges of a file, ascending, that become holes in the copy.
Outcome copy_tree(const std::string& from, const std::string& to,
                  std::span<const FileRange> left_out = {});

}  // namespace crane::checkpoint
