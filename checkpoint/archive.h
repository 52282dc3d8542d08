// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trees of files (tree.h) as one file that leaves this machine: a zstd frame, with zstd's checksum
// of the content, around a tar archive.  `tar --zstd -xf` reads it as well.
//
//   <head>             a small file at the beginning, which says what the archive is
//   var/lib/redis/     then trees; their names may have directories above them, which are not in it
//   var/lib/redis/..
//
// Holes are not written as such: blocks of zeros cost next to nothing, and become holes again.
// Sockets have no place in a tar archive: it is for the caller to leave them out.
//
// A reader trusts no archive: it refuses a name that leads out of its tree.  It knows that an
// archive is whole only when it has read all of it (ArchiveReader::read()).
//
// Threads: one object, one thread.  All of this may block for as long as the disk does.

#include <map>
#include <string>
#include <vector>

#include "checkpoint/compressed_file.h"
#include "checkpoint/pack.h"
#include "checkpoint/tree.h"

namespace crane::checkpoint {

// A sink of trees, one after the other.  kUnsupported: a socket.
class ArchiveWriter final : public TreeSink {
 public:
  // To `fd`; `path` is for messages.
  ArchiveWriter(Descriptor fd, const std::string& path);

  // First of all.
  Outcome head(const std::string& name, const std::string& text);
  Outcome inode(const std::string& name, const Inode& inode) override;
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Outcome leave() override;
  Outcome link(const std::string& name, std::uint32_t number) override;
  // The end.  A file is synced when it should be (`synced`).
  Outcome finish(bool synced);
  std::uint64_t bytes() const noexcept { return file_.bytes(); }
  int fd() const noexcept { return file_.fd(); }

 private:
  Outcome zeros_to(std::uint64_t end);
  std::string path_of(const std::string& name) const;

  CompressedFile file_;
  std::vector<std::string> open_;    // paths of directories, and at the end perhaps of a file
  std::uint64_t at_ = 0, size_ = 0;  // of that file
  bool in_file_ = false;
  std::map<std::uint32_t, std::string> links_;  // number -> path
};

class ArchiveReader {
 public:
  // `path` is for messages.
  ArchiveReader(Descriptor fd, std::string path);
  // The same for bytes that were already decompressed; what follows their end is not looked at.
  ArchiveReader(ByteSource source, std::string path);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  // The text of the head.  kBadArgument: the archive has no head of this name.
  Result<std::string> head(const std::string& name);
  // Tells `sink` of all that follows; a tree's name is told as it stands.  kDamaged: it was told
  // nonsense, but never of a name that leaves its tree.
  Outcome read(TreeSink& sink);

 private:
  class Stream;
  Outcome one(TreeSink& sink, bool& ended);
  Outcome next_member(struct ArchiveMember& member, bool& ended);
  Outcome leave_to(const std::string& path, TreeSink& sink);
  Outcome bytes_of(std::uint64_t size, TreeSink& sink);
  Error bad(const std::string& how) const;

  const std::string path_;
  std::unique_ptr<Stream> stream_;  // nullptr: the bytes come from elsewhere
  ByteSource source_;
  std::vector<std::string> open_;
  std::map<std::string, std::uint32_t> links_;
  std::vector<std::byte> piece_;
};

}  // namespace crane::checkpoint
