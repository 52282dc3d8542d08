// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/file_owner.h"

#include <asm/sockios.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <climits>

#include "dmt/file_owners.h"
#include "dmt/processes.h"
#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/signals/signals.h"

namespace crane::file_owner {
namespace {

using dmt::OwnerKind;

bool is_there(const dmt::Layout& w, OwnerKind kind, std::uint32_t id) noexcept {
  if (kind == OwnerKind::kProcess) return dmt::find_process(w, id) != dmt::kNoProcess;
  if (kind == OwnerKind::kThread) {
    for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
      if (dmt::is_alive(w.slots[i]) && w.slots[i].thread_id == id) return true;
    }
    return false;
  }
  for (std::uint16_t i = 1; i < dmt::kProcessesMax; ++i) {
    const dmt::ProcessRecord& p = w.processes[i];
    if (p.state != dmt::ProcessState::kFree && p.group == id) return true;
  }
  return false;
}

int set_owner(const dmt::Layout& w, FileRecord& f, OwnerKind kind, std::uint32_t id) noexcept {
  if (id != 0 && !is_there(w, kind, id)) return -ESRCH;
  f.owner.kind = id == 0 ? OwnerKind::kNoOwner : kind;
  f.owner.id = id;
  return 0;
}

int set_by_number(const dmt::Layout& w, FileRecord& f, int number) noexcept {
  if (number == INT_MIN) return -EINVAL;
  if (number < 0) return set_owner(w, f, OwnerKind::kGroup, static_cast<std::uint32_t>(-number));
  return set_owner(w, f, OwnerKind::kProcess, static_cast<std::uint32_t>(number));
}

int number_of(const FileRecord& f) noexcept {
  const int id = static_cast<int>(f.owner.id);
  return f.owner.kind == OwnerKind::kGroup ? -id : id;
}

int set_by_record(const dmt::Layout& w, FileRecord& f, const struct f_owner_ex& x) noexcept {
  const auto id = static_cast<std::uint32_t>(x.pid);
  switch (x.type) {
    case F_OWNER_TID:
      return set_owner(w, f, OwnerKind::kThread, id);
    case F_OWNER_PID:
      return set_owner(w, f, OwnerKind::kProcess, id);
    case F_OWNER_PGRP:
      return set_owner(w, f, OwnerKind::kGroup, id);
    default:
      return -EINVAL;
  }
}

int copy_owner(const FileRecord& f, struct f_owner_ex& out) noexcept {
  out.type = f.owner.kind == OwnerKind::kGroup     ? F_OWNER_PGRP
             : f.owner.kind == OwnerKind::kProcess ? F_OWNER_PID
                                                   : F_OWNER_TID;
  out.pid = static_cast<pid_t>(f.owner.id);
  return 0;
}

int set_signal(FileRecord& f, long signo) noexcept {
  if (signo < 0 || signo > kSignals) return -EINVAL;
  f.owner.signal = static_cast<std::uint8_t>(signo);
  return 0;
}

}  // namespace

int control(Turn& turn, FileRecord& f, int command, long x) noexcept {
  switch (command) {
    case F_SETOWN:
      return set_by_number(turn.w, f, static_cast<int>(x));
    case F_GETOWN:
      return number_of(f);
    case F_SETOWN_EX:
      return set_by_record(turn.w, f, *reinterpret_cast<const struct f_owner_ex*>(x));
    case F_GETOWN_EX:
      return copy_owner(f, *reinterpret_cast<struct f_owner_ex*>(x));
    case F_SETSIG:
      return set_signal(f, x);
    case F_GETSIG:
      return f.owner.signal;
    default:
      return kNotOfOwner;
  }
}

int device_control(Turn& turn, FileRecord& f, int fd, unsigned long command, long x) noexcept {
  if (command == FIOASYNC) {
    if (!dmt::can_signal_owner(f.kind)) return -ENOTTY;
    set_async(f, fd, *reinterpret_cast<const int*>(x) != 0);
    return 0;
  }
  if (!S_ISSOCK(ops_of(f).mode) || !dmt::can_signal_owner(f.kind)) return kNotOfOwner;
  switch (command) {
    case FIOSETOWN:
    case SIOCSPGRP:
      return set_by_number(turn.w, f, *reinterpret_cast<const int*>(x));
    case FIOGETOWN:
    case SIOCGPGRP:
      *reinterpret_cast<int*>(x) = number_of(f);
      return 0;
    default:
      return kNotOfOwner;
  }
}

void set_async(FileRecord& f, int fd, bool on) noexcept {
  if (!dmt::can_signal_owner(f.kind) || f.owner.wants_signal == on) return;
  f.owner.wants_signal = on;
  f.owner.fd = on ? fd : 0;
}

}  // namespace crane::file_owner
