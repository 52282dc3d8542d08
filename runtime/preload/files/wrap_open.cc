// SPDX-License-Identifier: Apache-2.0
// Opening files: descriptor numbers are assigned at turns (rule 10); the random devices are virtual
// (D7).
#include <cstring>

#include "dmt/base/log.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/machine_files.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/descriptors/room.h"
#include "runtime/preload/files/fifo.h"
#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/files/open.h"
#include "runtime/preload/files/proc_files.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/terminals/path.h"
#include "runtime/preload/terminals/terminal.h"
#include "runtime/preload/turn/vrandom.h"

namespace crane {
namespace {

constexpr std::size_t kPatternSize = 6;

bool is_random_device(const char* path) noexcept {
  return std::strcmp(path, "/dev/urandom") == 0 || std::strcmp(path, "/dev/random") == 0;
}

bool writes(std::uint64_t flags) noexcept {
  return (flags & O_PATH) == 0 && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0);
}

}  // namespace

int open_at(Turn& turn, int directory, const char* path, int flags, mode_t mode) noexcept {
  if (const long fd = open_proc_file(turn, path, flags); fd != kNotOurs) {
    return fd < 0 ? static_cast<int>(fd) : bind_plain(turn, fd);
  }
  if (const int known = descriptor_named(path); known >= 0 && !is_plain(known)) {
    return ops_of(turn, bound_file(known)).open_again(turn, known, path, flags);
  }
  if (const int fd = terminal::open(turn, directory, path, flags); fd != terminal::kNotTerminal) {
    return fd;
  }
  struct stat status;
  const bool may_be_fifo = fifo::may_be(path, flags);
  const bool seen_open = may_be_fifo && fifo::opens_at_once(flags);
  if (may_be_fifo && !seen_open && fifo::find(directory, path, flags, status)) {
    return fifo::open(turn, directory, path, flags, status);
  }
  const terminal::KernelPath kernel_path(turn.w, path);
  path = kernel_path.get();
  flags &= ~O_DIRECT;  // advice only, and some file systems refuse it
  const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
  const bool makes =
      nameless || ((flags & O_CREAT) != 0 && ((flags & O_EXCL) != 0 || !exists(directory, path)));
  if (!makes && writes(flags) && machine_files::is_named(turn, directory, path)) return -EACCES;
  const long fd =
      with_room_raw([&] { return raw_syscall(SYS_openat, directory, path, flags, mode); });
  if (fd < 0) return static_cast<int>(fd);
  if (seen_open && fifo::is_one(static_cast<int>(fd), status)) {
    raw_syscall(SYS_close, fd);
    return fifo::open(turn, directory, path, flags, status);
  }
  if (path != nullptr && path[0] == '/' && is_random_device(path)) {
    return bind_virtual(turn, fd, FileKind::kRandom, false);
  }
  const int number = bind_plain(turn, fd);
  if (makes || (flags & O_ACCMODE) != O_RDONLY) note_opened(turn, number, makes);
  if ((flags & O_TRUNC) != 0) note_written(number);
  if (makes && !nameless) note_parent(turn, directory, path);
  notify::opened(turn.w, number, flags, makes);
  return number;
}

int open_how(Turn& turn, int directory, const char* path, const void* how,
             std::size_t size) noexcept {
  const bool has_flags = size >= sizeof(std::uint64_t) && is_readable(how, sizeof(std::uint64_t));
  if (has_flags && writes(*static_cast<const std::uint64_t*>(how)) &&
      machine_files::is_named(turn, directory, path)) {
    return -EACCES;
  }
  const auto flags = has_flags ? static_cast<int>(*static_cast<const std::uint64_t*>(how)) : 0;
  const bool makes =
      (flags & O_CREAT) != 0 && notify::is_watched(turn.w, IN_CREATE) && !exists(directory, path);
  const int fd = bind_plain(
      turn, with_room_raw([=] { return raw_syscall(SYS_openat2, directory, path, how, size); }));
  if (fd >= 0) notify::opened(turn.w, fd, flags, makes);
  return fd;
}

bool has_name_pattern(const char* path, int suffix, char*& pattern) noexcept {
  const std::size_t size = std::strlen(path);
  if (suffix < 0 || size < kPatternSize + static_cast<std::size_t>(suffix)) return false;
  pattern = const_cast<char*>(path) + size - kPatternSize - static_cast<std::size_t>(suffix);
  return std::memcmp(pattern, "XXXXXX", kPatternSize) == 0;
}

void fill_name(char* pattern) noexcept {
  static constexpr char kLetters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  unsigned char bytes[kPatternSize];
  virtual_random(bytes, sizeof bytes);
  for (std::size_t i = 0; i < kPatternSize; ++i) {
    pattern[i] = kLetters[bytes[i] % (sizeof kLetters - 1)];
  }
}

namespace {

bool needs_mode(int flags) noexcept {
  return (flags & O_CREAT) != 0 || (flags & __O_TMPFILE) == __O_TMPFILE;
}

}  // namespace

namespace wrap {
namespace {

int temporary_file(Op op, char* path, int suffix, int flags) noexcept {
  Turn turn(op);
  constexpr int kOwn = O_RDWR | O_CREAT | O_EXCL;
  const int result = with_fresh_name(path, suffix, [&] {
    return open_at(turn, AT_FDCWD, path, (flags & ~O_ACCMODE) | kOwn, 0600);
  });
  return finish_int(turn, result);
}

// Returns the error that mkdir would return.
int exists_not(const char* path) noexcept {
  struct stat status {};
  const long error = raw_syscall(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW);
  return error == -ENOENT ? 0 : error == 0 ? -EEXIST : static_cast<int>(error);
}

}  // namespace

int openat(int d, const char* p, int f, mode_t m) {
  Turn turn(Op::openat, Turn::kCancellationPoint);
  return finish_int(turn, open_at(turn, d, p, f, m));
}
int open(const char* p, int f, mode_t m) {
  Turn turn(Op::open, Turn::kCancellationPoint);
  return finish_int(turn, open_at(turn, AT_FDCWD, p, f, m));
}
int open64(const char* p, int f, mode_t m) { return wrap::open(p, f, m); }
int openat64(int d, const char* p, int f, mode_t m) { return wrap::openat(d, p, f, m); }
int __open_2(const char* p, int f) {
  if (needs_mode(f)) fortify::end_in([=] { return real::__open_2(p, f); });
  return wrap::open(p, f, 0);
}
int __open64_2(const char* p, int f) { return wrap::__open_2(p, f); }
int __openat_2(int d, const char* p, int f) {
  if (needs_mode(f)) fortify::end_in([=] { return real::__openat_2(d, p, f); });
  return wrap::openat(d, p, f, 0);
}
int __openat64_2(int d, const char* p, int f) { return wrap::__openat_2(d, p, f); }
int creat(const char* p, mode_t m) { return wrap::open(p, O_CREAT | O_WRONLY | O_TRUNC, m); }
int creat64(const char* p, mode_t m) { return wrap::creat(p, m); }

int memfd_create(const char* p, unsigned f) {
  Turn turn(Op::memfd_create);
  return finish_int(turn, bind_plain(turn, raw_syscall(SYS_memfd_create, p, f)));
}

int shm_open(const char* p, int f, mode_t m) {
  Turn turn(Op::shm_open);
  char path[300] = "/dev/shm/";
  while (*p == '/') ++p;
  const std::size_t size = std::strlen(p);
  constexpr std::size_t kPrefix = 9;
  if (size == 0 || size > NAME_MAX || std::strchr(p, '/') != nullptr) {
    return finish_int(turn, -EINVAL);
  }
  std::memcpy(path + kPrefix, p, size + 1);
  return finish_int(turn, open_at(turn, AT_FDCWD, path, f | O_NOFOLLOW | O_CLOEXEC, m));
}

int mkostemps(char* p, int n, int f) { return temporary_file(Op::mkostemps, p, n, f); }
int mkostemps64(char* p, int n, int f) { return temporary_file(Op::mkostemps64, p, n, f); }
int mkstemps(char* p, int n) { return temporary_file(Op::mkstemps, p, n, 0); }
int mkstemps64(char* p, int n) { return temporary_file(Op::mkstemps64, p, n, 0); }
int mkostemp(char* p, int f) { return temporary_file(Op::mkostemp, p, 0, f); }
int mkostemp64(char* p, int f) { return temporary_file(Op::mkostemp64, p, 0, f); }
int mkstemp(char* p) { return temporary_file(Op::mkstemp, p, 0, 0); }
int mkstemp64(char* p) { return temporary_file(Op::mkstemp64, p, 0, 0); }

char* mkdtemp(char* p) {
  Turn turn(Op::mkdtemp);
  const int result = with_fresh_name(p, 0, [&] {
    return static_cast<int>(with_room_raw([&] { return raw_syscall(SYS_mkdir, p, 0700); }));
  });
  if (result >= 0) {
    note_made(turn, AT_FDCWD, p);
    notify::made(turn.w, AT_FDCWD, p, IN_ISDIR);
  }
  return finish(turn, result) < 0 ? nullptr : p;
}

// Names that no file has now.

char* mktemp(char* p) {
  Turn turn(Op::mktemp);
  const int result = with_fresh_name(p, 0, [=] { return exists_not(p); });
  if (finish(turn, result) < 0) *p = '\0';
  return p;
}

char* tmpnam_r(char* p) {
  if (p == nullptr) return nullptr;
  constexpr char kPattern[] = P_tmpdir "/fileXXXXXX";
  static_assert(sizeof kPattern <= L_tmpnam);
  std::memcpy(p, kPattern, sizeof kPattern);
  return *wrap::mktemp(p) == '\0' ? nullptr : p;
}
char* tmpnam(char* p) {
  static char name[L_tmpnam];
  return wrap::tmpnam_r(p == nullptr ? name : p);
}

// libc chooses the directory and allocates; Crane chooses the letters.
char* tempnam(const char* directory, const char* prefix) {
  Turn turn(Op::tempnam);
  char* name;
  {
    const OutsideCrane outside;
    name = real::tempnam(directory, prefix);
  }
  regain(turn);
  if (name == nullptr) return nullptr;
  std::memset(name + std::strlen(name) - kPatternSize, 'X', kPatternSize);
  return finish(turn, with_fresh_name(name, 0, [=] { return exists_not(name); })) < 0 ? nullptr
                                                                                      : name;
}

}  // namespace wrap
}  // namespace crane
