// SPDX-License-Identifier: Apache-2.0
// Who is told of urgent data.
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <climits>

#include "dmt/urgent.h"
#include "runtime/preload/sockets/vsock.h"

namespace crane::vsock {
namespace {

using dmt::Owner;
using dmt::OwnerKind;

int set_owner(Turn& turn, dmt::ConnectionState& c, OwnerKind kind, int id) noexcept {
  if (id < 0) return -EINVAL;
  return dmt::set_owner(turn.w, c, kind, static_cast<std::uint32_t>(id)) ? 0 : -ESRCH;
}

// A process, or minus a group.
int set_owner(Turn& turn, dmt::ConnectionState& c, long id) noexcept {
  const auto number = static_cast<int>(id);
  if (number == INT_MIN) return -EINVAL;
  return number < 0 ? set_owner(turn, c, OwnerKind::kGroup, -number)
                    : set_owner(turn, c, OwnerKind::kProcess, number);
}

int number_of(const Owner& owner) noexcept {
  const auto id = static_cast<int>(owner.id);
  return owner.kind == OwnerKind::kGroup ? -id : id;
}

int set_owner(Turn& turn, dmt::ConnectionState& c, const struct f_owner_ex& owner) noexcept {
  switch (owner.type) {
    case F_OWNER_TID:
      return set_owner(turn, c, OwnerKind::kThread, owner.pid);
    case F_OWNER_PID:
      return set_owner(turn, c, OwnerKind::kProcess, owner.pid);
    case F_OWNER_PGRP:
      return set_owner(turn, c, OwnerKind::kGroup, owner.pid);
    default:
      return -EINVAL;
  }
}

struct f_owner_ex shown(const dmt::ConnectionState& c) noexcept {
  const Owner owner = dmt::owner_of(c);
  const auto type = owner.kind == OwnerKind::kThread    ? F_OWNER_TID
                    : owner.kind == OwnerKind::kProcess ? F_OWNER_PID
                                                        : F_OWNER_PGRP;
  return {type, static_cast<pid_t>(owner.id)};
}

}  // namespace

bool is_at_mark(const FileRecord& f) noexcept {
  return f.kind == FileKind::kConnection && dmt::is_at_mark(f.connection);
}

bool control_owner(Turn& turn, std::uint32_t file, int command, long x, int& result) noexcept {
  if (file == 0 || turn.w.files[file].kind != FileKind::kConnection) return false;
  dmt::ConnectionState& c = turn.w.files[file].connection;
  switch (command) {
    case F_SETOWN:
      result = set_owner(turn, c, x);
      return true;
    case F_GETOWN:
      result = number_of(dmt::owner_of(c));
      return true;
    case F_SETOWN_EX:
      result = set_owner(turn, c, *reinterpret_cast<const struct f_owner_ex*>(x));
      return true;
    case F_GETOWN_EX:
      *reinterpret_cast<struct f_owner_ex*>(x) = shown(c);
      result = 0;
      return true;
    default:
      return false;
  }
}

bool device_owner(Turn& turn, std::uint32_t file, unsigned long command, long x,
                  int& result) noexcept {
  if (turn.w.files[file].kind != FileKind::kConnection) return false;
  dmt::ConnectionState& c = turn.w.files[file].connection;
  switch (command) {
    case FIOSETOWN:
    case SIOCSPGRP:
      result = set_owner(turn, c, *reinterpret_cast<const int*>(x));
      return true;
    case FIOGETOWN:
    case SIOCGPGRP:
      *reinterpret_cast<int*>(x) = number_of(dmt::owner_of(c));
      result = 0;
      return true;
    default:
      return false;
  }
}

void adopt_owner(Turn& turn, int fd, std::uint32_t file) noexcept {
  struct f_owner_ex owner = {};
  if (raw_syscall(SYS_fcntl, fd, F_GETOWN_EX, &owner) < 0 || owner.pid == 0) return;
  (void)set_owner(turn, turn.w.files[file].connection, owner);
}

}  // namespace crane::vsock
