// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers and times that stat returns for files in the kernel's file systems: those of the replica
// (DESIGN D7, rule 20; dmt/inodes.h). The table holds the time of a file that was opened for
// writing and of a directory that was changed. The kernel's file gets that time when the descriptor
// is closed, so it is still there after a restart. Writes through a shared mapping do not change
// the time.
//
// Threads: REQUIRES the turn, except note_written in serial mode, where the caller has the turn
// between its operations. These functions do not touch errno.

#include <sys/stat.h>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/turn/turn.h"

namespace crane {

// The device of all plain files; no file of Crane is on it.
inline constexpr unsigned kFileDeviceMajor = 8, kFileDeviceMinor = 1;
inline constexpr std::int64_t kFileBlockBytes = 4096;

// Reads the kernel's status of a file. Needs no turn.
inline bool look(int directory, const char* path, int flags, struct stat& s) noexcept {
  return raw_syscall(SYS_newfstatat, directory, path, &s, flags) == 0;
}

// Records that the plain descriptor `fd` was opened for writing.  `is_new` is true if the call
// created the file.
void note_opened(Turn& turn, int fd, bool is_new) noexcept;
// Records a write, before or after the call. Ignores descriptors that note_opened does not know.
void note_written(int fd) noexcept;
// Sets the time of the kernel's file to its virtual time; called before close.
void settle_time(dmt::Layout& w, int fd) noexcept;
// copy: `to` writes to the same file as `fd`; forget: `fd` writes to no file.
void copy_writable(int fd, int to) noexcept;
void forget_writable(int fd) noexcept;
bool is_writable(int fd) noexcept;

// Records a new inode at `path` and a change of its directory.
void note_made(Turn& turn, int directory, const char* path) noexcept;
// Records that the directory of `path` changed because a name was added or removed.
void note_parent(Turn& turn, int directory, const char* path) noexcept;
// Times of a file that the program set.
struct TimesSet {
  bool access, modification;
};
void note_times_set(Turn& turn, int directory, const char* path, int flags,
                    const TimesSet& set) noexcept;
// Records that the contents of the file were changed by name.
void note_truncated(Turn& turn, const char* path) noexcept;
bool exists(int directory, const char* path) noexcept;
// Writes the directory of a name: "a/b/" is in "a"; "a" in ".", "/a" in "/". False when it does not
// fit.
bool parent_of(const char* path, const Scratch<char>& out) noexcept;

// A file as a call names it: `path` relative to `directory`, or `directory` itself when the path is
// null; flags: AT_SYMLINK_NOFOLLOW.
struct Place {
  int directory;
  const char* path;
  int flags;
};

// Returns the number of the file at `place`, which has status `s`; assigns one if it has none.
std::uint64_t inode_number(dmt::Layout& w, const Place& place, const struct stat& s) noexcept;
// Returns the number that the file already has, or 0. It assigns none, so a file that only some
// replicas have does not change the numbers.
std::uint64_t known_inode_number(dmt::Layout& w, const struct stat& s) noexcept;
// As inode_number(), and the file keeps its number: for objects at which processes meet by name.
std::uint64_t held_inode_number(Turn& turn, const Place& place, const struct stat& s) noexcept;

// Replaces the fields that depend only on the file system: block size, blocks, sizes and links of
// directories. Needs no turn.
void make_uniform(struct stat& s) noexcept;

// Replaces the kernel's status of the file at `place` by values that are equal on all replicas.
void describe_plain(Turn& turn, const Place& place, struct stat& s) noexcept;
void describe_plain(Turn& turn, const Place& place, struct statx& s) noexcept;
inline void describe_plain(Turn& turn, const Place& place, struct stat64& s) noexcept {
  static_assert(sizeof(struct stat64) == sizeof(struct stat));
  describe_plain(turn, place, reinterpret_cast<struct stat&>(s));
}

// Returns the identity of a mapping of the file (mapping.h), which a restore keeps. 0: the
// file has none. REQUIRES the turn.
std::uint64_t identity_of_file(Turn& turn, int fd) noexcept;

}  // namespace crane
