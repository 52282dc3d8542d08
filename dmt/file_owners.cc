// SPDX-License-Identifier: Apache-2.0
#include "dmt/file_owners.h"

#include <csignal>

#include "dmt/process_table.h"
#include "dmt/signals.h"
#include "dmt/watches.h"

namespace crane::dmt {
namespace {

// si_code and si_band of the events (POLL_IN etc.); the bands include poll's old names.
struct Event {
  std::int32_t code;
  std::uint32_t band;
};
Event event_of(Readiness bits) noexcept {
  constexpr std::uint32_t kReadNormal = 0x40, kWriteNormal = 0x100, kWriteBand = 0x200;
  if ((bits & (kHup | kErr)) != 0) return {POLL_HUP, kHup | kErr};
  if ((bits & (kIn | kRdHup)) != 0) return {POLL_IN, kIn | kReadNormal};
  return {POLL_OUT, kOut | kWriteNormal | kWriteBand};
}

// In the layout of siginfo_t: the band overlays the sender's numbers, the descriptor the value.
SignalInfo info_of(const FileOwner& owner, Readiness bits) noexcept {
  SignalInfo info{};
  if (owner.signal == 0) {
    info.code = SI_KERNEL;
    return info;
  }
  const Event event = event_of(bits);
  info.code = event.code;
  info.pid = event.band;
  info.value = static_cast<std::uint32_t>(owner.fd);
  return info;
}

void send_to_thread(Layout& w, std::uint32_t id, int signo, const SignalInfo& info) noexcept {
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    if (!is_alive(w.slots[i]) || w.slots[i].thread_id != id) continue;
    send_signal_to_slot(w, Slot{i}, signo, info);
    return;
  }
}

void send_to_group(Layout& w, std::uint32_t id, int signo, const SignalInfo& info) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state == ProcessState::kAlive && p.group == id) send_signal(w, i, signo, info);
  }
}

}  // namespace

bool can_signal_owner(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::kEventFd:
    case FileKind::kTimerFd:
    case FileKind::kEpoll:
    case FileKind::kSignalFd:
    case FileKind::kProcess:
    case FileKind::kRandom:
      return false;
    default:
      return true;
  }
}

void signal_owner(Layout& w, std::uint32_t file, Readiness now, Readiness rise,
                  bool edge) noexcept {
  const FileOwner& owner = w.files[file].owner;
  const Readiness news = rise != 0 ? rise : edge ? now & kIn : 0;
  if (!owner.wants_signal || news == 0) return;
  send_to_owner(w, owner, owner.signal != 0 ? owner.signal : SIGIO, info_of(owner, news));
}

void send_to_owner(Layout& w, const FileOwner& owner, int signo, const SignalInfo& info) noexcept {
  switch (owner.kind) {
    case OwnerKind::kNoOwner:
      return;
    case OwnerKind::kThread:
      return send_to_thread(w, owner.id, signo, info);
    case OwnerKind::kGroup:
      return send_to_group(w, owner.id, signo, info);
    case OwnerKind::kProcess:
      if (const std::uint16_t p = find_process(w, owner.id); p != kNoProcess) {
        send_signal(w, p, signo, info);
      }
      return;
  }
}

}  // namespace crane::dmt
