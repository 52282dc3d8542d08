// SPDX-License-Identifier: Apache-2.0
// Directories: the first read takes the whole listing (listing.h) at its turn. The entries have the
// numbers that stat returns.
//
// A DIR of ours is a separate mapping that begins with a magic word. A DIR that libc opened for a
// thread without a slot, or before Crane was attached, stays libc's.
#include <cstring>

#include "dmt/base/assert.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/listing.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/files/open.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/pages.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"

namespace crane {
namespace {

constexpr std::uint64_t kMagic = 0x4352414e45444952;  // "CRANEDIR"
constexpr std::size_t kPage = 4096;

struct OpenDirectory {
  std::uint64_t magic;
  int fd;
  Listing listing;
};
static_assert(sizeof(OpenDirectory) <= kPage);
static_assert(sizeof(struct dirent) == sizeof(struct dirent64));

// malloc puts a word before every block, so no block of libc's begins at a page.
OpenDirectory* ours(DIR* d) noexcept {
  if (d == nullptr || reinterpret_cast<std::uintptr_t>(d) % kPage != 0) return nullptr;
  auto* const directory = reinterpret_cast<OpenDirectory*>(d);
  return directory->magic == kMagic ? directory : nullptr;
}

// Makes a call on a directory of ours, also for a thread without a slot.
template <typename Call>
auto at_directory(Op op, Call call) noexcept {
  if (InsideCrane::inside()) return call(nullptr);
  InsideCrane inside;
  Turn turn(op);
  return call(&turn);
}

// Returns the next entry; null at the end, or on an error, which is in `error`.
struct dirent64* next_entry(Turn* turn, OpenDirectory& d, int& error) noexcept {
  if (!d.listing.complete) {
    error = read_listing(d.listing, d.fd);
    if (error == 0 && turn != nullptr) notify::by_descriptor(turn->w, d.fd, IN_ACCESS);
  }
  if (error < 0) return nullptr;
  struct dirent64* const e = next_of(d.listing, d.fd, turn != nullptr ? &turn->w : nullptr);
  if (turn != nullptr && e != nullptr) turn->result(static_cast<std::uint64_t>(e->d_ino));
  return e;
}

struct dirent64* read_next(Op op, OpenDirectory& d) noexcept {
  int error = 0;
  struct dirent64* const e =
      at_directory(op, [&](Turn* turn) { return next_entry(turn, d, error); });
  if (error < 0) errno = -error;
  return e;
}

int read_next_into(Op op, OpenDirectory& d, struct dirent64* to,
                   struct dirent64** result) noexcept {
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
  auto* const d = static_cast<OpenDirectory*>(map_pages(kPage));
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
  OpenDirectory* const o = ours(d);
  if (o == nullptr) return real::closedir(d);
  const int fd = o->fd;
  drop_listing(o->listing);
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
  OpenDirectory* const o = ours(d);
  return o == nullptr ? real::readdir64(d) : read_next(Op::readdir64, *o);
}
struct dirent* readdir(DIR* d) {
  OpenDirectory* const o = ours(d);
  if (o == nullptr) return real::readdir(d);
  return reinterpret_cast<struct dirent*>(read_next(Op::readdir, *o));
}
int readdir64_r(DIR* d, struct dirent64* e, struct dirent64** r) {
  OpenDirectory* const o = ours(d);
  return o == nullptr ? real::readdir64_r(d, e, r) : read_next_into(Op::readdir64_r, *o, e, r);
}
int readdir_r(DIR* d, struct dirent* e, struct dirent** r) {
  OpenDirectory* const o = ours(d);
  if (o == nullptr) return real::readdir_r(d, e, r);
  return read_next_into(Op::readdir_r, *o, reinterpret_cast<struct dirent64*>(e),
                        reinterpret_cast<struct dirent64**>(r));
}

void rewinddir(DIR* d) {
  OpenDirectory* const o = ours(d);
  if (o == nullptr) return real::rewinddir(d);
  drop_listing(o->listing);
  raw_syscall(SYS_lseek, o->fd, 0, SEEK_SET);
}
// A position is an index into the sorted list.
void seekdir(DIR* d, long at) {
  OpenDirectory* const o = ours(d);
  if (o == nullptr) return real::seekdir(d, at);
  o->listing.next = static_cast<std::uint32_t>(at);
}
long telldir(DIR* d) {
  const OpenDirectory* const o = ours(d);
  return o == nullptr ? real::telldir(d) : static_cast<long>(o->listing.next);
}
int dirfd(DIR* d) {
  const OpenDirectory* const o = ours(d);
  return o == nullptr ? real::dirfd(d) : o->fd;
}

ssize_t getdents64(int fd, void* b, size_t n) {
  Turn turn(Op::getdents64);
  const ssize_t got = read_directory(fd, b, n, &turn.w);
  turn.result(got);
  if (got >= 0) notify::by_descriptor(turn.w, fd, IN_ACCESS);
  return got < 0 ? fail(static_cast<int>(-got)) : got;
}

}  // namespace wrap
}  // namespace crane
