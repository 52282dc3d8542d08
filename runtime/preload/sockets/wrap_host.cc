// SPDX-License-Identifier: Apache-2.0
// The machine that every replica claims to run on (DESIGN D7, rule 20).
#include <cstring>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/machine.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/turn.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::wrap {
namespace {

constexpr long kMemoryPages = 1 << 20;
constexpr unsigned kPageBytes = 4096;
constexpr unsigned long kFileSystemBlocks = 1ul << 26, kFileSystemFiles = 1ul << 24;
constexpr unsigned long kNameMax = 255;

template <std::size_t size>
void copy(const char* text, char (&out)[size]) noexcept {
  std::memcpy(out, text, strnlen(text, size - 1));
}

template <typename T>
void fill_counts(T* s) noexcept {
  std::memset(s, 0, sizeof *s);
  s->f_bsize = kPageBytes;
  s->f_frsize = kPageBytes;
  s->f_blocks = kFileSystemBlocks;
  s->f_bfree = s->f_bavail = kFileSystemBlocks / 2;
  s->f_files = kFileSystemFiles;
  s->f_ffree = kFileSystemFiles / 2;
}

void fill(struct statvfs* s) noexcept {
  fill_counts(s);
  s->f_favail = s->f_ffree;
  s->f_namemax = kNameMax;
}
void fill(struct statvfs64* s) noexcept {
  fill_counts(s);
  s->f_favail = s->f_ffree;
  s->f_namemax = kNameMax;
}
template <typename T>
void fill(T* s) noexcept {
  constexpr long kExt4 = 0xef53;
  fill_counts(s);
  s->f_type = kExt4;
  s->f_namelen = static_cast<decltype(s->f_namelen)>(kNameMax);
}

// Whether the path exists depends on the replica; the reported values do not. Uses raw system
// calls, because these functions replace libc's (libc_view.h).
template <typename Where, typename T>
int describe(long number, Where where, T* s) noexcept {
  struct statfs kernels {};
  const long error = raw_syscall(number, where, &kernels);
  if (error < 0) return fail(static_cast<int>(-error));
  fill(s);
  return 0;
}

}  // namespace

long sysconf(int name) {
  switch (name) {
    case _SC_NPROCESSORS_CONF:
    case _SC_NPROCESSORS_ONLN:
      return kProcessors;
    case _SC_PHYS_PAGES:
    case _SC_AVPHYS_PAGES:
      return kMemoryPages;
    case _SC_LEVEL1_ICACHE_SIZE:
    case _SC_LEVEL1_DCACHE_SIZE:
      return 32 * 1024;
    case _SC_LEVEL2_CACHE_SIZE:
      return 1024 * 1024;
    case _SC_LEVEL3_CACHE_SIZE:
      return 16 * 1024 * 1024;
    case _SC_LEVEL1_ICACHE_ASSOC:
    case _SC_LEVEL1_DCACHE_ASSOC:
    case _SC_LEVEL2_CACHE_ASSOC:
    case _SC_LEVEL3_CACHE_ASSOC:
      return 8;
    case _SC_LEVEL1_ICACHE_LINESIZE:
    case _SC_LEVEL1_DCACHE_LINESIZE:
    case _SC_LEVEL2_CACHE_LINESIZE:
    case _SC_LEVEL3_CACHE_LINESIZE:
      return 64;
    case _SC_LEVEL4_CACHE_SIZE:
    case _SC_LEVEL4_CACHE_ASSOC:
    case _SC_LEVEL4_CACHE_LINESIZE:
      return 0;
    default:
      return real::sysconf(name);
  }
}

long get_phys_pages() { return kMemoryPages; }
long get_avphys_pages() { return kMemoryPages; }

int get_nprocs() { return kProcessors; }
int get_nprocs_conf() { return kProcessors; }

int getloadavg(double* values, int n) {
  const int count = n < 3 ? n : 3;
  for (int i = 0; i < count; ++i) values[i] = 0.0;
  return count;
}

int sysinfo(struct sysinfo* s) {
  std::memset(s, 0, sizeof *s);
  s->uptime = virtual_now() / kNsPerSecond;
  s->totalram = s->freeram = static_cast<unsigned long>(kMemoryPages);
  s->procs = 1;
  s->mem_unit = kPageBytes;
  return 0;
}

int uname(struct utsname* u) {
  std::memset(u, 0, sizeof *u);
  copy("Linux", u->sysname);
  copy(without_turn().header.configuration.host_name, u->nodename);
  copy("6.1.0", u->release);
  copy("#1 SMP", u->version);
  copy("x86_64", u->machine);
  copy("(none)", u->domainname);
  return 0;
}

int gethostname(char* name, size_t n) {
  const char* host = without_turn().header.configuration.host_name;
  const std::size_t size = std::strlen(host) + 1;
  std::memcpy(name, host, size < n ? size : n);
  return size <= n ? 0 : fail(ENAMETOOLONG);
}
int __gethostname_chk(char* name, size_t n, size_t room) {
  fortify::check_room(n, room);
  return wrap::gethostname(name, n);
}

// --- file systems: there is one, and it has room -------------------------------------------------

int statfs(const char* p, struct statfs* s) { return describe(SYS_statfs, p, s); }
int fstatfs(int fd, struct statfs* s) { return describe(SYS_fstatfs, fd, s); }
int statfs64(const char* p, struct statfs64* s) { return describe(SYS_statfs, p, s); }
int fstatfs64(int fd, struct statfs64* s) { return describe(SYS_fstatfs, fd, s); }
int statvfs(const char* p, struct statvfs* s) { return describe(SYS_statfs, p, s); }
int fstatvfs(int fd, struct statvfs* s) { return describe(SYS_fstatfs, fd, s); }
int statvfs64(const char* p, struct statvfs64* s) { return describe(SYS_statfs, p, s); }
int fstatvfs64(int fd, struct statvfs64* s) { return describe(SYS_fstatfs, fd, s); }

}  // namespace crane::wrap
