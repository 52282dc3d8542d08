// SPDX-License-Identifier: Apache-2.0
// Directories, read in one order: by name (rule 20). The kernel's order is that of creation or of a
// hash that each file system seeds anew. A listing is taken whole, at the turn of the first read,
// and its entries have the numbers that stat gives them.
//
// A DIR of ours is a mapping of its own with a magic word at its head; one that libc opened for a
// thread without a slot, or before we were attached, stays libc's.
#include <linux/mman.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "dmt/base/assert.h"
#include "runtime/inode.h"
#include "runtime/inside.h"
#include "runtime/open.h"
#include "runtime/pages.h"
#include "runtime/real.h"
#include "runtime/wrappers.h"

namespace crane {
namespace {

constexpr std::uint64_t kMagic = 0x4352414e45444952;  // "CRANEDIR"
constexpr std::size_t kPage = 4096, kListingBytes = 64 * 1024;

struct Directory {
  std::uint64_t magic;
  int fd;
  bool listed;
  std::uint32_t next, count;
  std::byte* listing;    // as getdents64 gave it, in a mapping of `capacity` bytes
  std::size_t capacity;  // the first `used` hold entries, the order's offsets lie behind them
  std::size_t used;
  std::uint32_t* order;  // offsets of the entries, by name
};
static_assert(sizeof(Directory) <= kPage);
static_assert(sizeof(struct dirent) == sizeof(struct dirent64));

// malloc's own word lies before every block it gives, so none of libc's begins a page.
Directory* ours(DIR* d) noexcept {
  if (d == nullptr || reinterpret_cast<std::uintptr_t>(d) % kPage != 0) return nullptr;
  auto* const directory = reinterpret_cast<Directory*>(d);
  return directory->magic == kMagic ? directory : nullptr;
}

// An operation on one of ours, also when a thread without a slot asks.
template <typename Call>
auto at_directory(Op op, Call call) noexcept {
  if (InsideCrane::inside()) return call(nullptr);
  InsideCrane inside;
  Turn turn(op);
  return call(&turn);
}

struct dirent64* entry_at(const Directory& d, std::uint32_t offset) noexcept {
  return reinterpret_cast<struct dirent64*>(d.listing + offset);
}

void drop_listing(Directory& d) noexcept {
  if (d.listing != nullptr) raw_syscall(SYS_munmap, d.listing, d.capacity);
  d.listing = nullptr;
  d.listed = false;
  d.used = d.capacity = 0;
  d.next = d.count = 0;
}

// Twice the room, or the first; 0 or a negative error number.
int grow(Directory& d) noexcept {
  const std::size_t bytes = d.listing == nullptr ? kListingBytes : 2 * d.capacity;
  const long at = d.listing == nullptr
                      ? reinterpret_cast<long>(map_pages(bytes))
                      : raw_syscall(SYS_mremap, d.listing, d.capacity, bytes, MREMAP_MAYMOVE);
  if (at <= 0) return -ENOMEM;
  d.listing = reinterpret_cast<std::byte*>(at);
  d.capacity = bytes;
  return 0;
}

// All entries, sorted; half of the room is kept for the order: no entry is shorter than 24 bytes.
int list(Directory& d) noexcept {
  for (;;) {
    if (d.used + kPage > d.capacity / 2) {
      if (const int error = grow(d); error < 0) return error;
    }
    const long got = raw_syscall(SYS_getdents64, d.fd, d.listing + d.used, d.capacity / 2 - d.used);
    if (got < 0) return static_cast<int>(got);
    if (got == 0) break;
    d.used += static_cast<std::size_t>(got);
  }
  d.order = reinterpret_cast<std::uint32_t*>(d.listing + d.capacity / 2);
  for (std::size_t at = 0; at < d.used;
       at += entry_at(d, static_cast<std::uint32_t>(at))->d_reclen) {
    d.order[d.count++] = static_cast<std::uint32_t>(at);
  }
  std::sort(d.order, d.order + d.count, [&](std::uint32_t a, std::uint32_t b) {
    return std::strcmp(entry_at(d, a)->d_name, entry_at(d, b)->d_name) < 0;
  });
  d.listed = true;
  return 0;
}

unsigned char type_of(mode_t mode) noexcept { return static_cast<unsigned char>(IFTODT(mode)); }

// The entry's number and type are those of the file, when it is still there.
void describe(Turn* turn, const Directory& d, struct dirent64& e) noexcept {
  constexpr ino64_t kGone = 1;
  struct stat s {};
  e.d_off = static_cast<off64_t>(d.next);
  if (turn == nullptr) return;
  const long error =
      raw_syscall(SYS_newfstatat, d.fd, static_cast<char*>(e.d_name), &s, AT_SYMLINK_NOFOLLOW);
  if (error < 0) {
    e.d_ino = kGone;
    return;
  }
  e.d_type = type_of(s.st_mode);
  e.d_ino = inode_number(*turn, {d.fd, e.d_name, AT_SYMLINK_NOFOLLOW}, s);
}

// The next entry, null at the end; `error` otherwise.
struct dirent64* next_entry(Turn* turn, Directory& d, int& error) noexcept {
  error = d.listed ? 0 : list(d);
  if (error < 0 || d.next >= d.count) return nullptr;
  struct dirent64* const e = entry_at(d, d.order[d.next++]);
  describe(turn, d, *e);
  if (turn != nullptr) turn->result(static_cast<std::uint64_t>(e->d_ino));
  return e;
}

struct dirent64* read_next(Op op, Directory& d) noexcept {
  int error = 0;
  struct dirent64* const e =
      at_directory(op, [&](Turn* turn) { return next_entry(turn, d, error); });
  if (error < 0) errno = -error;
  return e;
}

int read_next_into(Op op, Directory& d, struct dirent64* to, struct dirent64** result) noexcept {
  int error = 0;
  const struct dirent64* const e =
      at_directory(op, [&](Turn* turn) { return next_entry(turn, d, error); });
  *result = nullptr;
  if (e != nullptr) {
    std::memcpy(to, e, e->d_reclen);
    *result = to;
  }
  return -error;
}

DIR* directory_of(int fd) noexcept {
  auto* const d = static_cast<Directory*>(map_pages(kPage));
  if (d == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  d->magic = kMagic;
  d->fd = fd;
  return reinterpret_cast<DIR*>(d);
}

}  // namespace

namespace wrap {

DIR* opendir(const char* p) {
  const int fd = wrap::open(p, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return nullptr;
  DIR* const d = directory_of(fd);
  if (d == nullptr) wrap::close(fd);
  return d;
}

DIR* fdopendir(int fd) {
  struct stat s {};
  const long error = raw_syscall(SYS_fstat, fd, &s);
  if (error < 0 || !S_ISDIR(s.st_mode)) {
    errno = error < 0 ? static_cast<int>(-error) : ENOTDIR;
    return nullptr;
  }
  return directory_of(fd);
}

int closedir(DIR* d) {
  Directory* const o = ours(d);
  if (o == nullptr) return real::closedir(d);
  const int fd = o->fd;
  drop_listing(*o);
  raw_syscall(SYS_munmap, o, kPage);
  const int result = at_directory(Op::closedir, [=](Turn* turn) {
    const int done = turn != nullptr ? close_descriptor(*turn, fd)
                                     : static_cast<int>(raw_syscall(SYS_close, fd));
    if (turn != nullptr) turn->result(done);
    return done;
  });
  return result < 0 ? fail(-result) : result;
}

struct dirent64* readdir64(DIR* d) {
  Directory* const o = ours(d);
  return o == nullptr ? real::readdir64(d) : read_next(Op::readdir64, *o);
}
struct dirent* readdir(DIR* d) {
  Directory* const o = ours(d);
  if (o == nullptr) return real::readdir(d);
  return reinterpret_cast<struct dirent*>(read_next(Op::readdir, *o));
}
int readdir64_r(DIR* d, struct dirent64* e, struct dirent64** r) {
  Directory* const o = ours(d);
  return o == nullptr ? real::readdir64_r(d, e, r) : read_next_into(Op::readdir64_r, *o, e, r);
}
int readdir_r(DIR* d, struct dirent* e, struct dirent** r) {
  Directory* const o = ours(d);
  if (o == nullptr) return real::readdir_r(d, e, r);
  return read_next_into(Op::readdir_r, *o, reinterpret_cast<struct dirent64*>(e),
                        reinterpret_cast<struct dirent64**>(r));
}

void rewinddir(DIR* d) {
  Directory* const o = ours(d);
  if (o == nullptr) return real::rewinddir(d);
  drop_listing(*o);
  raw_syscall(SYS_lseek, o->fd, 0, SEEK_SET);
}
// Positions are those of the sorted list.
void seekdir(DIR* d, long at) {
  Directory* const o = ours(d);
  if (o == nullptr) return real::seekdir(d, at);
  o->next = static_cast<std::uint32_t>(at);
}
long telldir(DIR* d) {
  const Directory* const o = ours(d);
  return o == nullptr ? real::telldir(d) : static_cast<long>(o->next);
}
int dirfd(DIR* d) {
  const Directory* const o = ours(d);
  return o == nullptr ? real::dirfd(d) : o->fd;
}

}  // namespace wrap
}  // namespace crane
