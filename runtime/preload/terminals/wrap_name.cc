// SPDX-License-Identifier: Apache-2.0
// Functions that take or return the name of a terminal in /dev/pts, which has another number in the
// kernel than in the program. For other names they are libc's, and not operations.
#include <algorithm>
#include <cstring>

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/descriptors/machine_files.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/descriptors/room.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/terminals/path.h"

namespace crane::wrap {
namespace {

template <typename Call>
int at_path(Op op, const char* path, Call call) noexcept {
  std::uint32_t number;
  if (!terminal::parse_name(path, number)) return call(path);
  return at_turn(
      op, [&]() CRANE_REQUIRES_TURN { return call(terminal::KernelPath(*segment, path).get()); });
}

// Links below /proc such as "socket:[17]" and "mnt:[17]" contain a number that differs between
// replicas. For a descriptor of the process it becomes the number that fstat returns, else 1.
// Returns the bytes of such a link for the caller, or -1: another link.
ssize_t read_numbered(Op op, const char* path, char* b, size_t n) noexcept {
  constexpr char kPlace[] = "/proc/";
  constexpr std::size_t kLongest = 32;  // before the number
  if (n == 0 || !is_readable(path, sizeof kPlace)) return -1;
  if (std::strncmp(path, kPlace, sizeof kPlace - 1) != 0) return -1;
  char text[kLongest + 24];
  const long size = raw_syscall(SYS_readlink, path, text, kLongest);
  char* const colon =
      size > 0 ? static_cast<char*>(std::memchr(text, ':', static_cast<std::size_t>(size)))
               : nullptr;
  const bool has_number = colon != nullptr && text[0] != '/' && text + size - colon > 2 &&
                          colon[1] == '[' && colon[2] >= '0' && colon[2] <= '9';
  if (!has_number) return -1;
  Turn turn(op);
  const FileRecord* const file = bound_record(descriptor_named(path));
  print_number("", file == nullptr ? 1 : inode_of(*file), colon + 2);
  std::strcat(colon, "]");
  const std::size_t given = std::min(std::strlen(text), n);
  if (!is_writable(b, given)) return finish_int(turn, -EFAULT);
  std::memcpy(b, text, given);
  turn.result(static_cast<std::uint64_t>(given));
  return static_cast<ssize_t>(given);
}

// Translates the `result` bytes of a link in `b`.
ssize_t translated(Op op, ssize_t result, char* b, size_t n) noexcept {
  constexpr char kPlace[] = "/dev/pts/";
  if (result < static_cast<ssize_t>(sizeof kPlace) ||
      std::memcmp(b, kPlace, sizeof kPlace - 1) != 0) {
    return result;
  }
  Turn turn(op);
  return static_cast<ssize_t>(
      terminal::translate_link(turn.w, b, static_cast<std::size_t>(result), n));
}

}  // namespace

ssize_t readlink(const char* p, char* b, size_t n) {
  const ssize_t numbered = read_numbered(Op::readlink, p, b, n);
  return numbered >= 0 ? numbered : translated(Op::readlink, real::readlink(p, b, n), b, n);
}
ssize_t readlinkat(int d, const char* p, char* b, size_t n) {
  const ssize_t numbered = read_numbered(Op::readlinkat, p, b, n);
  return numbered >= 0 ? numbered : translated(Op::readlinkat, real::readlinkat(d, p, b, n), b, n);
}
ssize_t __readlink_chk(const char* p, char* b, size_t n, size_t room) {
  fortify::check_room(n, room);
  return wrap::readlink(p, b, n);
}
ssize_t __readlinkat_chk(int d, const char* p, char* b, size_t n, size_t room) {
  fortify::check_room(n, room);
  return wrap::readlinkat(d, p, b, n);
}

int access(const char* p, int how) {
  return at_path(Op::access, p, [=](const char* q) { return real::access(q, how); });
}
int faccessat(int d, const char* p, int how, int f) {
  return at_path(Op::faccessat, p, [=](const char* q) { return real::faccessat(d, q, how, f); });
}
int euidaccess(const char* p, int how) {
  return at_path(Op::euidaccess, p, [=](const char* q) { return real::euidaccess(q, how); });
}
int eaccess(const char* p, int how) { return wrap::euidaccess(p, how); }

namespace {

// Changes owner or mode, which belong to the machine in its own file systems.
template <typename Call>
int change(Op op, int d, const char* p, int follow, Call call) noexcept {
  if (machine_files::has_owner(d, p, follow & AT_SYMLINK_NOFOLLOW)) return fail(EPERM);
  const int result =
      at_path(op, p, [=](const char* q) { return with_room([=] { return call(q); }); });
  if (result == 0 && notify::needs_late_report(IN_ATTRIB)) {
    notify::report_place_later(op, d, p, follow, IN_ATTRIB);
  }
  return result;
}
template <typename Call>
int change_open(Op op, int fd, Call call) noexcept {
  if (machine_files::has_owner(fd)) return fail(EPERM);
  const int result = call();
  if (result == 0 && notify::needs_late_report(IN_ATTRIB)) notify::report_later(op, fd, IN_ATTRIB);
  return result;
}

}  // namespace

int chmod(const char* p, mode_t m) {
  return change(Op::chmod, AT_FDCWD, p, 0, [=](const char* q) { return real::chmod(q, m); });
}
int fchmodat(int d, const char* p, mode_t m, int f) {
  return change(Op::fchmodat, d, p, f, [=](const char* q) { return real::fchmodat(d, q, m, f); });
}
int fchmod(int fd, mode_t m) {
  return change_open(Op::fchmod, fd, [=] { return real::fchmod(fd, m); });
}

int chown(const char* p, uid_t u, gid_t g) {
  return change(Op::chown, AT_FDCWD, p, 0, [=](const char* q) { return real::chown(q, u, g); });
}
int lchown(const char* p, uid_t u, gid_t g) {
  return change(Op::lchown, AT_FDCWD, p, AT_SYMLINK_NOFOLLOW,
                [=](const char* q) { return real::lchown(q, u, g); });
}
int fchown(int fd, uid_t u, gid_t g) {
  return change_open(Op::fchown, fd, [=] { return real::fchown(fd, u, g); });
}
int fchownat(int d, const char* p, uid_t u, gid_t g, int f) {
  return change(Op::fchownat, d, p, f,
                [=](const char* q) { return real::fchownat(d, q, u, g, f); });
}

}  // namespace crane::wrap
