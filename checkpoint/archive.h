// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trees of files (tree.h) as one file for another machine: a tar archive in a zstd frame, with
// zstd's checksum of the content.  `tar --zstd -xf` reads it, too.
//
//   <head>             a small file at the beginning, which describes the archive
//   var/lib/redis/     then trees; the archive omits the directories above a tree
//   var/lib/redis/..
//
// Holes are written as blocks of zeros, which cost almost nothing and become holes again.  A tar
// archive cannot contain sockets: the caller must omit them.
//
// A reader trusts no archive: it refuses a name that leads out of its tree.  Only after it has read
// all of an archive does it know that the archive is complete (ArchiveReader::read()).
//
// Threads: one object, one thread.  All calls may block for as long as the disk does.

#include <map>
#include <string>
#include <vector>

#include "checkpoint/compressed_file.h"
#include "checkpoint/pack.h"
#include "checkpoint/tar_format.h"
#include "checkpoint/tree.h"

namespace crane::checkpoint {

// A sink of trees, one after another. kUnsupported: a socket.
class ArchiveWriter final : public TreeSink {
 public:
  // Writes to `fd`; `path` is for messages.
  ArchiveWriter(Descriptor fd, const std::string& path);

  // Must be the first call.
  Outcome head(const std::string& name, const std::string& text);
  Outcome inode(const std::string& name, const Inode& inode) override;
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Outcome leave() override;
  Outcome link(const std::string& name, std::uint32_t number) override;
  // Writes the end of the archive.  If `synced`, syncs the file.
  Outcome finish(bool synced);
  std::uint64_t bytes() const noexcept { return file_.bytes(); }
  int fd() const noexcept { return file_.fd(); }

 private:
  Outcome zeros_to(std::uint64_t end);
  std::string path_of(const std::string& name) const;

  CompressedFile file_;
  std::vector<std::string> open_;    // paths of open directories, and possibly of a file at the end
  std::uint64_t at_ = 0, size_ = 0;  // position in and size of that file
  bool in_file_ = false;
  std::map<std::uint32_t, std::string> links_;  // number -> path
};

class ArchiveReader {
 public:
  // `path` is for messages.
  ArchiveReader(Descriptor fd, std::string path);
  // Reads decompressed bytes from `source`; bytes after the archive's end are not checked.
  ArchiveReader(ByteSource source, std::string path);
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  // The text of the head.  kBadArgument: the archive has no head of this name.  kDamaged: a file of
  // zstd that was cut or changed before the head's end.
  Result<std::string> head(const std::string& name);
  // Passes everything that follows to `sink`, with the trees' names unchanged. kDamaged: the sink
  // got wrong data, but never a name that leaves its tree.
  Outcome read(TreeSink& sink);

 private:
  Outcome read_member(TreeSink& sink, bool& ended);
  Outcome next_member(tar::Header& header, bool& ended);
  Outcome leave_to(const std::string& path, TreeSink& sink);
  Outcome read_content(std::uint64_t size, TreeSink& sink);
  Error bad(const std::string& how) const;

  const std::string path_;
  std::unique_ptr<DecompressedFile> file_;  // nullptr: the caller supplied a ByteSource
  ByteSource source_;
  std::vector<std::string> open_;
  std::map<std::string, std::uint32_t> links_;
  std::vector<std::byte> piece_;
};

}  // namespace crane::checkpoint
