// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/descriptors/inode.h"

#include <sys/sysmacros.h>

#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/inodes.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/turn/vtime.h"

namespace crane {
namespace {

using dmt::InodeRecord;

struct Writable {
  std::uint64_t number;  // 0 = not opened for writing
  std::uint32_t record;
};
Writable writables[dmt::kFdsMax];

// Values that fit every file system, also one that has no blocks.
constexpr std::int64_t kBlock = kFileBlockBytes, kSector = 512;

Writable* writable_of(int fd) noexcept {
  const bool in_range = fd >= 0 && fd < static_cast<int>(dmt::kFdsMax);
  return in_range && writables[fd].number != 0 ? &writables[fd] : nullptr;
}

std::int64_t wall_now(const dmt::Layout& w) noexcept {
  return w.scheduler.now_ns + w.scheduler.wall_offset_ns;
}

// The link of an open file gives its path from this process's root, which must be the server's
// root.
bool has_servers_root(dmt::InodeTable& t) noexcept {
  struct stat root {};
  if (!look(AT_FDCWD, "/", 0, root)) return false;
  if (t.root_inode == 0) {
    t.root_device = root.st_dev;
    t.root_inode = root.st_ino;
  }
  return t.root_device == root.st_dev && t.root_inode == root.st_ino;
}

void note_path(dmt::Layout& w, InodeRecord& r, const Place& place) noexcept {
  if (!has_servers_root(w.inodes)) return;
  const bool by_name = place.path != nullptr && place.path[0] != '\0';
  const int follow = (place.flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
  const long fd =
      by_name ? raw_syscall(SYS_openat, place.directory, place.path, O_PATH | O_CLOEXEC | follow, 0)
              : place.directory;
  if (fd < 0) return;
  const Scratch<char> path(PATH_MAX);
  const long size = read_link_of(static_cast<unsigned>(fd), path.data(), path.size());
  if (by_name) raw_syscall(SYS_close, fd);
  // The link of a socket is not a path.
  if (size <= 0 || size == PATH_MAX || path[0] != '/') return;
  dmt::remember_path(w, r, {path.data(), static_cast<std::size_t>(size)});
}

InodeRecord& record_of(dmt::Layout& w, const Place& place, std::uint64_t device,
                       std::uint64_t inode) noexcept {
  const std::uint64_t last = w.inodes.last_number;
  InodeRecord& r = dmt::find_inode(w, device, inode);
  if (w.inodes.last_number != last) note_path(w, r, place);
  return r;
}

void remember(int fd, const dmt::Layout& w, const InodeRecord& r) noexcept {
  writables[fd] = {r.number, dmt::index_of(w, r)};
}

void set_kernel_time(int directory, const char* path, std::int64_t ns, int flags) noexcept {
  const struct timespec time = to_timespec(ns);
  const struct timespec times[2] = {time, time};
  raw_syscall(SYS_utimensat, directory, path, times, flags);
}

// Files that were created with the container (a run directory) may be older than the replica's
// first look on one machine and younger on another, and the clocks of machines differ. A file of
// this age therefore counts as new.
constexpr std::int64_t kFreshNs = 60 * kNsPerSecond;

// Returns the current time of the file. If it was written since the last look, or changed outside
// the wrappers after the replica began, it counts as modified now.
std::int64_t time_of(dmt::Layout& w, InodeRecord& r, std::int64_t kernel_ns) noexcept {
  const bool changed_unseen =
      r.modified_ns == dmt::kNotModified && kernel_ns > w.inodes.began_ns - kFreshNs;
  if (r.unseen || changed_unseen) {
    r.modified_ns = wall_now(w);
    r.unseen = false;
  }
  return r.modified_ns == dmt::kNotModified ? kernel_ns : r.modified_ns;
}

std::int64_t modified(dmt::Layout& w, InodeRecord& r, mode_t mode,
                      std::int64_t kernel_ns) noexcept {
  // The times of devices and of files in /proc are those of this boot or this container.
  if (S_ISCHR(mode) || S_ISBLK(mode)) return w.inodes.began_ns;
  return time_of(w, r, kernel_ns);
}

// Each replica has its own access times. Only an access time that the program set is reported.
struct timespec accessed(const InodeRecord& r, const struct timespec& modified) noexcept {
  return r.accessed_ns == dmt::kNotModified ? modified : to_timespec(r.accessed_ns);
}

void put_time(struct statx_timestamp& out, const struct timespec& time) noexcept {
  out.tv_sec = time.tv_sec;
  out.tv_nsec = static_cast<std::uint32_t>(time.tv_nsec);
}

std::int64_t blocks_of(mode_t mode, std::int64_t size) noexcept {
  if (S_ISDIR(mode)) return kBlock / kSector;
  return S_ISREG(mode) ? (size + kBlock - 1) / kBlock * (kBlock / kSector) : 0;
}

}  // namespace

bool parent_of(const char* path, const Scratch<char>& out) noexcept {
  std::size_t size = std::strlen(path);
  while (size > 1 && path[size - 1] == '/') --size;
  while (size > 0 && path[size - 1] != '/') --size;
  while (size > 1 && path[size - 1] == '/') --size;
  if (size == 0) {
    out[0] = '.';
    size = 1;
  } else if (size < out.size()) {
    std::memcpy(out.data(), path, size);
  } else {
    return false;
  }
  out[size] = '\0';
  return true;
}

void note_opened(Turn& turn, int fd, bool is_new) noexcept {
  struct stat s {};
  forget_writable(fd);
  if (!look(fd, "", AT_EMPTY_PATH, s) || !S_ISREG(s.st_mode)) return;
  InodeRecord& r = is_new ? dmt::make_inode(turn.w, s.st_dev, s.st_ino)
                          : record_of(turn.w, {fd, nullptr, 0}, s.st_dev, s.st_ino);
  r.unseen = r.unseen || is_new;
  r.modified_ns = time_of(turn.w, r, to_ns(s.st_mtim));
  if (fd < static_cast<int>(dmt::kFdsMax)) remember(fd, turn.w, r);
}

void note_written(int fd) noexcept {
  const Writable* const known = writable_of(fd);
  if (known == nullptr) return;
  dmt::Layout& w = without_turn();
  if (!dmt::is_inode(w, known->record, known->number)) {
    // So many other files were looked at since that this file lost its number; it gets another.
    struct stat s {};
    if (!dmt::has_turn(w, own_slot()) || !look(fd, "", AT_EMPTY_PATH, s)) return;
    remember(fd, w, dmt::find_inode(w, s.st_dev, s.st_ino));
  }
  w.inodes.records[known->record].unseen = true;
}

void settle_time(dmt::Layout& w, int fd) noexcept {
  const Writable* const known = writable_of(fd);
  if (known == nullptr || !dmt::is_inode(w, known->record, known->number)) return;
  struct stat s {};
  if (!look(fd, "", AT_EMPTY_PATH, s)) return;
  const std::int64_t kernel_ns = to_ns(s.st_mtim);
  const std::int64_t ns = time_of(w, w.inodes.records[known->record], kernel_ns);
  if (ns != kernel_ns) set_kernel_time(fd, nullptr, ns, 0);
}

void copy_writable(int fd, int to) noexcept {
  forget_writable(to);
  if (const Writable* const known = writable_of(fd); known != nullptr) {
    if (to >= 0 && to < static_cast<int>(dmt::kFdsMax)) writables[to] = *known;
  }
}
void forget_writable(int fd) noexcept {
  if (Writable* const known = writable_of(fd); known != nullptr) known->number = 0;
}
bool is_writable(int fd) noexcept { return writable_of(fd) != nullptr; }

bool exists(int directory, const char* path) noexcept {
  return raw_syscall(SYS_faccessat, directory, path, F_OK) != -ENOENT;
}

void note_made(Turn& turn, int directory, const char* path) noexcept {
  struct stat s {};
  if (look(directory, path, AT_SYMLINK_NOFOLLOW, s)) {
    InodeRecord& r = dmt::make_inode(turn.w, s.st_dev, s.st_ino);
    r.modified_ns = wall_now(turn.w);
    set_kernel_time(directory, path, r.modified_ns, AT_SYMLINK_NOFOLLOW);
  }
  note_parent(turn, directory, path);
}

void note_parent(Turn& turn, int directory, const char* path) noexcept {
  const Scratch<char> memory(PATH_MAX);
  const char* const parent = memory.data();
  struct stat s {};
  if (!parent_of(path, memory) || !look(directory, parent, 0, s)) return;
  InodeRecord& r = record_of(turn.w, {directory, parent, 0}, s.st_dev, s.st_ino);
  r.modified_ns = wall_now(turn.w);
  set_kernel_time(directory, parent, r.modified_ns, 0);
}

void note_times_set(Turn& turn, int directory, const char* path, int flags,
                    const TimesSet& set) noexcept {
  struct stat s {};
  const int empty = path == nullptr ? AT_EMPTY_PATH : 0;
  if (!look(directory, path == nullptr ? "" : path, flags | empty, s)) return;
  InodeRecord& r = record_of(turn.w, {directory, path, flags}, s.st_dev, s.st_ino);
  if (set.access) r.accessed_ns = to_ns(s.st_atim);
  if (!set.modification) return;
  r.modified_ns = to_ns(s.st_mtim);
  r.unseen = false;
}

void note_truncated(Turn& turn, const char* path) noexcept {
  struct stat s {};
  if (!look(AT_FDCWD, path, 0, s)) return;
  record_of(turn.w, {AT_FDCWD, path, 0}, s.st_dev, s.st_ino).unseen = true;
}

std::uint64_t inode_number(dmt::Layout& w, const Place& place, const struct stat& s) noexcept {
  return record_of(w, place, s.st_dev, s.st_ino).number;
}

std::uint64_t known_inode_number(dmt::Layout& w, const struct stat& s) noexcept {
  return dmt::known_number(w, s.st_dev, s.st_ino);
}

std::uint64_t held_inode_number(Turn& turn, const Place& place, const struct stat& s) noexcept {
  InodeRecord& r = record_of(turn.w, place, s.st_dev, s.st_ino);
  // A file that the server created got its number without its path being recorded.
  if (dmt::path_of(turn.w, r).empty()) note_path(turn.w, r, place);
  dmt::hold_inode(turn.w, r);
  return r.number;
}

void make_uniform(struct stat& s) noexcept {
  s.st_blksize = kBlock;
  s.st_blocks = blocks_of(s.st_mode, s.st_size);
  if (S_ISDIR(s.st_mode)) {
    s.st_size = kBlock;
    s.st_nlink = 1;  // as on file systems that do not count subdirectories
  }
}

void describe_plain(Turn& turn, const Place& place, struct stat& s) noexcept {
  InodeRecord& r = record_of(turn.w, place, s.st_dev, s.st_ino);
  s.st_mtim = to_timespec(modified(turn.w, r, s.st_mode, to_ns(s.st_mtim)));
  // The time of a rename and of changes to the directory's storage differs between replicas.
  s.st_ctim = s.st_mtim;
  s.st_atim = accessed(r, s.st_mtim);
  s.st_dev = makedev(kFileDeviceMajor, kFileDeviceMinor);
  s.st_ino = r.number;
  make_uniform(s);
}

void describe_plain(Turn& turn, const Place& place, struct statx& s) noexcept {
  InodeRecord& r = record_of(turn.w, place, makedev(s.stx_dev_major, s.stx_dev_minor), s.stx_ino);
  const std::int64_t kernel_ns =
      saturating_add(s.stx_mtime.tv_sec * kNsPerSecond, s.stx_mtime.tv_nsec);
  const struct timespec time = to_timespec(modified(turn.w, r, s.stx_mode, kernel_ns));
  put_time(s.stx_mtime, time);
  put_time(s.stx_atime, accessed(r, time));
  s.stx_ctime = s.stx_btime = s.stx_mtime;
  s.stx_dev_major = kFileDeviceMajor;
  s.stx_dev_minor = kFileDeviceMinor;
  s.stx_ino = r.number;
  s.stx_blksize = kBlock;
  s.stx_blocks =
      static_cast<std::uint64_t>(blocks_of(s.stx_mode, static_cast<std::int64_t>(s.stx_size)));
  s.stx_mask &= STATX_BASIC_STATS | STATX_BTIME;
  s.stx_attributes = s.stx_attributes_mask = 0;
  s.stx_mnt_id = 0;
  if (S_ISDIR(s.stx_mode)) {
    s.stx_size = kBlock;
    s.stx_nlink = 1;
  }
}

std::uint64_t identity_of_file(Turn& turn, int fd) noexcept {
  struct stat status;
  if (raw_syscall(SYS_fstat, fd, &status) != 0) return 0;
  const std::uint64_t number = held_inode_number(turn, {fd, nullptr, 0}, status);
  return (number * 0x9E3779B97F4A7C15) ^ (1ull << 63);
}

}  // namespace crane
