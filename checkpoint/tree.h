// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tree of files as a stream of events, exact: who reads a tree (walk) or a pack (pack.h) tells a
// sink, which makes files of it (Extractor) or a pack.  So a copy, a pack and its unpacking cannot
// disagree about what belongs to a file.
//
// Kept: type, mode with its special bits, owner, group, mtime in ns, hard links within the tree,
// every extended attribute (trusted.overlay.*, capabilities, ACLs), device numbers (an overlay's
// whiteouts are 0:0), FIFOs, sockets, holes.  Not kept: atime and ctime, flags of chattr, links to
// what is outside.  At most kDepthMax directories deep.
//
// Threads: one object, one thread.  All of this may block for as long as the disk does.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/descriptor.h"
#include "checkpoint/file_error.h"

namespace crane::checkpoint {

inline constexpr std::size_t kDepthMax = 400;      // each level costs a descriptor
inline constexpr std::size_t kPieceMax = 1 << 18;  // bytes of one data()
inline constexpr std::size_t kAttributesMax = 1 << 22;

struct Inode {
  std::uint32_t mode = 0;  // with the type, as stat gives it
  std::uint32_t uid = 0, gid = 0;
  std::uint32_t mtime_ns = 0;
  std::int64_t mtime_s = 0;
  std::uint64_t device = 0;  // of device nodes
  std::uint64_t size = 0;    // of regular files
  std::uint32_t link = 0;    // number within this stream, from 1; 0: it has but one name
  std::string target;        // of symbolic links
  std::vector<std::pair<std::string, std::string>> attributes;  // extended, sorted by name
};

class TreeSink {
 public:
  virtual ~TreeSink() = default;
  // A new one.  Of a directory: what follows is in it, until its leave().  Of a regular file: its
  // data follows, in ascending pieces of at most kPieceMax that do not overlap, then leave().
  // What data() leaves out is a hole.
  virtual Outcome inode(const std::string& name, const Inode& inode) = 0;
  virtual Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual Outcome leave() = 0;
  // One more name of the inode with this number.
  virtual Outcome link(const std::string& name, std::uint32_t number) = 0;
};

// Tells `sink` of the file or directory at `path`, under the name `name`; names in a directory come
// sorted.  No process may change it meanwhile: a file that ends early is kDamaged.
Outcome walk(const std::string& path, const std::string& name, TreeSink& sink);

// Makes it within the directory `parent`, where none of the names may exist.
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
    std::string path;
    std::uint64_t end = 0;  // of a file: where its last piece ended
  };
  Result<int> directory();
  std::string path_of(const std::string& name) const;
  Outcome dress(int fd, const std::string& path, const Inode& inode);
  Outcome make_special(int directory, const std::string& name, const Inode& inode);
  Outcome dress_special(int directory, const std::string& name, const Inode& inode);

  std::string parent_;
  Descriptor root_;
  std::vector<Open> open_;  // directories, and at the end perhaps a file
  std::unordered_map<std::uint32_t, std::string> links_;  // number -> path
};

// Bytes of a file.
struct FileRange {
  std::uint64_t from = 0, to = 0;
};

// An exact copy of the file or directory `from` as `to`, which must not exist.  `left_out`: of a
// file, ascending; they are holes in the copy.
Outcome copy_tree(const std::string& from, const std::string& to,
                  std::span<const FileRange> left_out = {});

}  // namespace crane::checkpoint
