// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/attach/libc_view.h"

#include <algorithm>

#include "dmt/base/log.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/listing.h"
#include "runtime/preload/ground/code.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace {

// Makes `call` inside Crane, so that the kernel does not trap its system calls.
template <typename Call>
auto as_ours(Call call) noexcept {
  if (InsideCrane::inside()) return call();
  InsideCrane inside;
  return call();
}

// A descriptor may stand for a virtual file. The kernel's placeholder answers libc's queries about
// it (terminal, directory) correctly, too.
int status_at(int directory, const char* path, struct stat* s, int flags) noexcept {
  const long error =
      as_ours([=] { return raw_syscall(SYS_newfstatat, directory, path, s, flags); });
  if (error < 0) return fail(static_cast<int>(-error));
  make_uniform(*s);
  return 0;
}
int status_of_path(const char* path, struct stat* s) noexcept {
  return status_at(AT_FDCWD, path, s, 0);
}
int status_of_link(const char* path, struct stat* s) noexcept {
  return status_at(AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW);
}
int status_of_descriptor(int fd, struct stat* s) noexcept {
  return fd < 0 ? fail(EBADF) : status_at(fd, "", s, AT_EMPTY_PATH);
}

ssize_t entries_of(int fd, void* out, size_t size) noexcept {
  const bool for_us = InsideCrane::inside();
  const ssize_t got = as_ours([&]() -> ssize_t {
    if (for_us) return raw_syscall(SYS_getdents64, fd, out, size);
    return read_directory(fd, out, size, nullptr);
  });
  return got < 0 ? fail(static_cast<int>(-got)) : got;
}

int file_system_of_path(const char* path, struct statfs64* s) noexcept {
  return as_ours([=] { return wrap::statfs64(path, s); });
}
int file_system_of(int fd, struct statfs64* s) noexcept {
  return as_ours([=] { return wrap::fstatfs64(fd, s); });
}

struct Takeover {
  const char* name;
  std::uintptr_t function, replacement;
};

// The range of the functions that may be changed.
struct Range {
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
};

bool may_change(const Takeover& one) noexcept {
  return is_libc_or_trusted(reinterpret_cast<const void*>(one.function));
}

}  // namespace

void take_over_libc_view() noexcept {
  const Takeover table[] = {
      {"stat", address_of(real::stat64.get()), address_of(status_of_path)},
      {"lstat", address_of(real::lstat64.get()), address_of(status_of_link)},
      {"fstat", address_of(real::fstat64.get()), address_of(status_of_descriptor)},
      {"fstatat", address_of(real::fstatat64.get()), address_of(status_at)},
      {"getdents64", address_of(real::getdents64.get()), address_of(entries_of)},
      {"statfs", address_of(real::statfs64.get()), address_of(file_system_of_path)},
      {"fstatfs", address_of(real::fstatfs64.get()), address_of(file_system_of)},
      {"sysinfo", address_of(real::sysinfo.get()), address_of(wrap::sysinfo)},
      {"get_nprocs", address_of(real::get_nprocs.get()), address_of(wrap::get_nprocs)},
      {"get_nprocs_conf", address_of(real::get_nprocs_conf.get()),
       address_of(wrap::get_nprocs_conf)},
  };
  // One change of protection for all: each costs a split of the mapping in every program.
  Range range;
  for (const Takeover& one : table) {
    if (one.function == 0 || !may_change(one)) continue;  // this libc may not have it
    range = {std::min(range.begin, one.function), std::max(range.end, one.function + kJumpBytes)};
  }
  constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
  const bool writable =
      range.begin < range.end && protect_code(range.begin, range.end - range.begin, kAll) == 0;
  for (const Takeover& one : table) {
    if (one.function == 0) continue;
    // No replacement calls the function that it replaces.
    if (writable && may_change(one)) {
      write_jump(one.function, one.replacement);
      continue;
    }
    Message() << "libc's own calls of " << one.name << " see this machine: its code cannot be "
              << "changed; replicas on different machines may differ";
  }
  if (!writable) return;
  if (protect_code(range.begin, range.end - range.begin, PROT_READ | PROT_EXEC) != 0) {
    Message() << "libc's code stays writable";
  }
}

}  // namespace crane
