// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stat says of files in the kernel's file systems: numbers and times of the replica (DESIGN
// D7, rule 20; dmt/inodes.h). A file that was opened for writing, and a directory that was changed,
// has its time in the table; the kernel's file gets it when the descriptor is closed, so that it is
// there after a restart. What is written through a shared mapping moves no time.
//
// Threads: REQUIRES the turn, but for note_written in serial mode, where the caller has it between
// its operations. Nothing here touches errno.

#include <sys/stat.h>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/turn/turn.h"

namespace crane {

// All plain files are on one device, which no descriptor of ours is on.
inline constexpr unsigned kFileDeviceMajor = 8, kFileDeviceMinor = 1;
inline constexpr std::int64_t kFileBlockBytes = 4096;

// The kernel's status of a file.  Needs no turn.
inline bool look(int directory, const char* path, int flags, struct stat& s) noexcept {
  return raw_syscall(SYS_newfstatat, directory, path, &s, flags) == 0;
}

// The plain descriptor `fd` was opened for writing; `is_new`: the call has made the file.
void note_opened(Turn& turn, int fd, bool is_new) noexcept;
// It will be, or was, written to; nothing for descriptors that note_opened does not know.
void note_written(int fd) noexcept;
// Gives the kernel's file its virtual time; before close.
void settle_time(dmt::Layout& w, int fd) noexcept;
// `to` writes to the same file as `fd`; forget: it writes to none.
void copy_writable(int fd, int to) noexcept;
void forget_writable(int fd) noexcept;
bool is_writable(int fd) noexcept;

// Something was made at `path`: a new inode, and the directory was changed.
void note_made(Turn& turn, int directory, const char* path) noexcept;
// A name at `path` came or went: its directory was modified.
void note_parent(Turn& turn, int directory, const char* path) noexcept;
// Times of the file were set by the program: which of them.
struct TimesSet {
  bool access, modification;
};
void note_times_set(Turn& turn, int directory, const char* path, int flags,
                    const TimesSet& set) noexcept;
// Its contents were changed by name.
void note_truncated(Turn& turn, const char* path) noexcept;
bool exists(int directory, const char* path) noexcept;
// The directory of a name: "a/b/" is in "a"; "a" in ".", "/a" in "/".  False when it does not fit.
bool parent_of(const char* path, const Scratch<char>& out) noexcept;

// A file as the calls name it: `path` from `directory`, which is the file itself when there is no
// path; flags: AT_SYMLINK_NOFOLLOW.
struct Place {
  int directory;
  const char* path;
  int flags;
};

// The number of the file of `s` at `place`.
std::uint64_t inode_number(dmt::Layout& w, const Place& place, const struct stat& s) noexcept;
// The number that it has already; 0: none, and none is given, so that nothing here depends on files
// that are not the same on all replicas.
std::uint64_t known_inode_number(dmt::Layout& w, const struct stat& s) noexcept;
// As inode_number(), and the file keeps it: for the names of what processes meet at.
std::uint64_t held_inode_number(Turn& turn, const Place& place, const struct stat& s) noexcept;

// What depends on the file system alone: block size, blocks, sizes and links of directories.  Needs
// no turn.
void make_uniform(struct stat& s) noexcept;

// Replaces what the kernel said of the file at `place` by what is the same on every replica.
void describe_plain(Turn& turn, const Place& place, struct stat& s) noexcept;
void describe_plain(Turn& turn, const Place& place, struct statx& s) noexcept;
inline void describe_plain(Turn& turn, const Place& place, struct stat64& s) noexcept {
  static_assert(sizeof(struct stat64) == sizeof(struct stat));
  describe_plain(turn, place, reinterpret_cast<struct stat&>(s));
}

// The identity of a mapping of the file (turn/mapping.h), also after a restore.  REQUIRES the turn.
// 0: the file has none.
std::uint64_t identity_of_file(Turn& turn, int fd) noexcept;

}  // namespace crane
