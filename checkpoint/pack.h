// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tree (tree.h) as one file: a zstd frame, with zstd's checksum of the content, around
//
//   "CRNPACK1"
//   'i' name inode          a file, directory, ..; a directory's content follows
//     'd' offset:u64 length:u32 bytes    data of a regular file; ascending, with holes between
//     'u'                   the end of a directory or regular file
//   'l' name number:u32     one more name of an inode
//   'z' records:u64         the end: number of records before it
//
// with name and other strings = length:u16 bytes, and inode = mode:u32 uid:u32 gid:u32 mtime_ns:u32
// mtime_s:i64 device:u64 size:u64 number:u32 target attributes:u32 {name length:u32 bytes}, all
// little-endian.  There is one entry at the top, with a name that the reader knows.  Equal trees
// make equal packs.
//
// Why not tar: GNU tar drops sockets, needs a child process whose errors are text in some language,
// and many readers do not know its formats for holes and attributes.  A pack stores the segment's
// holes and an overlay's whiteouts and attributes in one walk, which uses the same code as copies.
//
// Threads: free functions; may block for as long as the disk does.

#include <cstdint>
#include <functional>
#include <string>

#include "checkpoint/tree.h"

namespace crane::checkpoint {

inline constexpr char kPackMagic[] = "CRNPACK1";  // the first bytes of a pack
inline constexpr char kPackEnding[] = ".pack";    // of its file's name

// The properties of a pack, which its reader checks.
struct PackedFile {
  std::string name;            // "upper.pack": the pack of "upper"
  std::uint64_t bytes = 0;     // size of the file
  std::uint32_t crc = 0;       // CRC32C of the file
  std::uint64_t unpacked = 0;  // bytes before compression
  std::string part() const;    // "upper"
  friend bool operator==(const PackedFile&, const PackedFile&) = default;
};

// Packs the file or directory `source` into the new file `target`, synced.  `level` is zstd's.
// `on_bytes` may be empty.
Result<PackedFile> pack(const std::string& source, const std::string& target, int level,
                        const OnBytes& on_bytes = {});

// Reads all of the pack `path`, passes its content to `sink`, and compares it with `expected`.  If
// it differs: kDamaged, naming the file.  The sink then got wrong data, but never a name that leads
// out of its directory.
Outcome read_pack(const std::string& path, const PackedFile& expected, TreeSink& sink);

// Reads a pack's decompressed bytes from `source`.
using ByteSource = std::function<Outcome(void* to, std::size_t size)>;  // all bytes, or an error
Outcome decode(const ByteSource& source, const std::string& part, const std::string& path,
               TreeSink& sink);

// A sink that ignores everything: reading a pack into it verifies the pack.
class NullSink final : public TreeSink {
 public:
  Outcome inode(const std::string&, const Inode&) override { return Done{}; }
  Outcome data(std::uint64_t, std::span<const std::byte>) override { return Done{}; }
  Outcome leave() override { return Done{}; }
  Outcome link(const std::string&, std::uint32_t) override { return Done{}; }
};

}  // namespace crane::checkpoint
