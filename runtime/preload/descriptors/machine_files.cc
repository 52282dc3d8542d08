// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/descriptors/machine_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <climits>
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/scratch.h"

namespace crane::machine_files {
namespace {

constexpr long kConfigfs = 0x62656570;
constexpr long kOfMachine[] = {
    SYSFS_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,  DEBUGFS_MAGIC, TRACEFS_MAGIC,
    SECURITYFS_MAGIC, SELINUX_MAGIC,      SMACK_MAGIC,          BPF_FS_MAGIC,  EFIVARFS_MAGIC,
    PSTOREFS_MAGIC,   BINFMTFS_MAGIC,     RDTGROUP_SUPER_MAGIC, kConfigfs};

bool is_of_machine(long type) noexcept {
  for (const long t : kOfMachine) {
    if (type == t) return true;
  }
  return false;
}

// Opens the named file without any effect; the caller closes it.
long look(int directory, const char* path, int flags) noexcept {
  return raw_syscall(SYS_openat, directory, path, O_PATH | O_CLOEXEC | flags, 0);
}

// The file system's type, or 0.
long type_of(long fd) noexcept {
  struct statfs s {};
  return raw_syscall(SYS_fstatfs, fd, &s) == 0 ? static_cast<long>(s.f_type) : 0;
}

// Uses one system call where statfs can take the name.
long type_of_named(int directory, const char* path) noexcept {
  if (path[0] == '/' || directory == AT_FDCWD) {
    struct statfs s {};
    return raw_syscall(SYS_statfs, path, &s) == 0 ? static_cast<long>(s.f_type) : 0;
  }
  const long fd = look(directory, path, 0);
  if (fd < 0) return 0;
  const long type = type_of(fd);
  raw_syscall(SYS_close, fd);
  return type;
}

// Returns the process to which `place`, a path in /proc, belongs, or 0. The files below net/ of a
// process are tables of the network, which it shares with others.
std::uint32_t process_of(const char* place) noexcept {
  constexpr std::size_t kTop = 6;
  if (std::strncmp(place, "/proc/", kTop) != 0) return 0;
  std::uint32_t pid;
  const char* rest = parse_number(place + kTop, pid);
  if (rest == place + kTop || *rest != '/') return 0;
  if (std::strncmp(rest, "/task/", 6) == 0) {
    std::uint32_t thread;
    rest = parse_number(rest + 6, thread);
  }
  return std::strncmp(rest, "/net/", 5) == 0 ? 0 : pid;
}

// Whether a file in /proc does not belong to a process of the server.
bool is_foreign_file(const dmt::Layout& w, int directory, const char* path) noexcept {
  const long fd = look(directory, path, 0);
  if (fd < 0) return false;  // the call itself will fail
  char place[128];
  const long size = read_link_of(static_cast<unsigned>(fd), place, sizeof place - 1);
  raw_syscall(SYS_close, fd);
  if (size < 0) return true;
  place[size] = '\0';
  const std::uint32_t pid = process_of(place);
  return pid == 0 || dmt::find_process(w, pid) == dmt::kNoProcess;
}

}  // namespace

bool is_named(Turn& turn, int directory, const char* path) noexcept {
  if (path == nullptr) return false;
  const long type = type_of_named(directory, path);
  if (type == PROC_SUPER_MAGIC) return is_foreign_file(turn.w, directory, path);
  return is_of_machine(type);
}

bool has_owner(int directory, const char* path, int follow) noexcept {
  if (path == nullptr) return false;
  const long fd = look(directory, path, follow == AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
  if (fd < 0) return false;  // the call itself will fail
  const long type = type_of(fd);
  raw_syscall(SYS_close, fd);
  return is_of_machine(type);
}

bool has_owner(int fd) noexcept { return is_of_machine(type_of(fd)); }

bool is_made_in(int directory, const char* path) noexcept {
  if (path == nullptr) return false;
  std::size_t n = std::strlen(path);
  while (n > 0 && path[n - 1] == '/') --n;
  while (n > 0 && path[n - 1] != '/') --n;
  if (n == 0) return is_of_machine(type_of_named(directory, "."));
  if (n >= PATH_MAX) return false;  // ENAMETOOLONG
  const Scratch<char> parent(n + 1);
  std::memcpy(parent.data(), path, n);
  parent.data()[n] = '\0';
  return is_of_machine(type_of_named(directory, parent.data()));
}

}  // namespace crane::machine_files
