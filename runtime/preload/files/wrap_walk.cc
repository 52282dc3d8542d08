// SPDX-License-Identifier: Apache-2.0
// Walks through directories (ftw, fts, scandir) are libc's own. libc_view makes their order fixed;
// this file replaces the status of each file by what stat returns. fts_children, and the filter and
// order functions of scandir, see the kernel's device, numbers and times.
#include <sys/sysmacros.h>

#include "dmt/base/raw.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"

namespace crane {
namespace {

// The program's function that a walk calls; a walk may contain an inner walk.
struct Walk {
  __nftw_func_t with_level;  // of nftw
  __ftw_func_t without;      // of ftw
  int flags;
  Walk* outer;
};
thread_local constinit Walk* walk = nullptr;

struct stat uniform(Op op, const char* path, const struct stat& s, int kind) noexcept {
  struct stat uniform_stat = s;
  if (kind == FTW_NS) return uniform_stat;  // there is no status
  const bool is_link = (walk->flags & FTW_PHYS) != 0 || kind == FTW_SLN;
  InsideCrane inside;
  Turn turn(op);
  describe_plain(turn, {AT_FDCWD, path, is_link ? AT_SYMLINK_NOFOLLOW : 0}, uniform_stat);
  turn.result(uniform_stat.st_ino);
  return uniform_stat;
}

int visit_with_level(const char* path, const struct stat* s, int kind, struct FTW* at) {
  const Walk* const own = walk;
  // With FTW_CHDIR the walk is in the file's directory.
  const char* const name = (own->flags & FTW_CHDIR) != 0 ? path + at->base : path;
  const struct stat uniform_stat = uniform(Op::nftw, name, *s, kind);
  return own->with_level(path, &uniform_stat, kind, at);
}

int visit_without_level(const char* path, const struct stat* s, int kind) {
  const Walk* const own = walk;
  const struct stat uniform_stat = uniform(Op::ftw, path, *s, kind);
  return own->without(path, &uniform_stat, kind);
}

template <typename Real>
int walk_with(Walk own, Real real) noexcept {
  walk = &own;
  int result;
  {
    OutsideCrane outside;
    result = real();
  }
  walk = own.outer;
  return result;
}

// fts keeps the kernel's numbers of a directory in addition to its status, and returns the entry
// twice.
template <typename Entry>
void make_uniform_entry(Op op, Entry& e) noexcept {
  const bool has_status = e.fts_statp != nullptr && e.fts_info != FTS_NS &&
                          e.fts_info != FTS_NSOK && e.fts_info != FTS_ERR;
  if (!has_status) return;
  struct stat& s = reinterpret_cast<struct stat&>(*e.fts_statp);
  if (S_ISDIR(s.st_mode)) {
    s.st_dev = e.fts_dev;
    s.st_ino = e.fts_ino;
  }
  const int flags = S_ISLNK(s.st_mode) ? AT_SYMLINK_NOFOLLOW : 0;
  Turn turn(op);
  describe_plain(turn, {AT_FDCWD, e.fts_accpath, flags}, s);
  turn.result(s.st_ino);
}

template <typename Entry, typename Real>
Entry* next_of_walk(Op op, Real real) noexcept {
  Entry* entry;
  {
    OutsideCrane outside;  // for the program's order function
    entry = real();
  }
  if (entry != nullptr) make_uniform_entry(op, *entry);
  return entry;
}

// Replaces the numbers of the entries; scandir made the list and its order.
template <typename Entry, typename Real>
int scan(Op op, int directory, const char* path, Entry*** list, Real real) noexcept {
  int count;
  {
    OutsideCrane outside;  // for the program's filter and order functions
    count = real();
  }
  if (count <= 0) return count;
  const int saved = errno;
  Turn turn(op);
  const long fd = raw_syscall(SYS_openat, directory, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  for (int i = 0; fd >= 0 && i < count; ++i) {
    Entry& e = *(*list)[i];
    struct stat s {};
    if (raw_syscall(SYS_newfstatat, fd, e.d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    e.d_ino = inode_number(turn.w, {static_cast<int>(fd), e.d_name, AT_SYMLINK_NOFOLLOW}, s);
  }
  if (fd >= 0) raw_syscall(SYS_close, fd);
  turn.result(count);
  errno = saved;
  return count;
}

}  // namespace

namespace wrap {

int ftw(const char* p, __ftw_func_t each, int fds) {
  return walk_with({nullptr, each, 0, walk},
                   [=] { return real::ftw(p, visit_without_level, fds); });
}
int ftw64(const char* p, __ftw64_func_t each, int fds) {
  return wrap::ftw(p, reinterpret_cast<__ftw_func_t>(each), fds);
}
int nftw(const char* p, __nftw_func_t each, int fds, int f) {
  return walk_with({each, nullptr, f, walk},
                   [=] { return real::nftw(p, visit_with_level, fds, f); });
}
int nftw64(const char* p, __nftw64_func_t each, int fds, int f) {
  return wrap::nftw(p, reinterpret_cast<__nftw_func_t>(each), fds, f);
}

FTSENT* fts_read(FTS* t) {
  return next_of_walk<FTSENT>(Op::fts_read, [=] { return real::fts_read(t); });
}
FTSENT64* fts64_read(FTS64* t) {
  return next_of_walk<FTSENT64>(Op::fts64_read, [=] { return real::fts64_read(t); });
}

int scandir(const char* p, struct dirent*** l, DirectoryFilter f, DirectoryOrder o) {
  return scan(Op::scandir, AT_FDCWD, p, l, [=] { return real::scandir(p, l, f, o); });
}
int scandir64(const char* p, struct dirent64*** l, DirectoryFilter64 f, DirectoryOrder64 o) {
  return scan(Op::scandir64, AT_FDCWD, p, l, [=] { return real::scandir64(p, l, f, o); });
}
int scandirat(int d, const char* p, struct dirent*** l, DirectoryFilter f, DirectoryOrder o) {
  return scan(Op::scandirat, d, p, l, [=] { return real::scandirat(d, p, l, f, o); });
}
int scandirat64(int d, const char* p, struct dirent64*** l, DirectoryFilter64 f,
                DirectoryOrder64 o) {
  return scan(Op::scandirat64, d, p, l, [=] { return real::scandirat64(d, p, l, f, o); });
}

}  // namespace wrap
}  // namespace crane
