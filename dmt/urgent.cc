// SPDX-License-Identifier: Apache-2.0
#include "dmt/urgent.h"

#include <cerrno>
#include <csignal>

#include "dmt/base/assert.h"
#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/processes.h"

namespace crane::dmt {
namespace {

// ConnectionState::owner of a thread.  No number of a thread or a process is as large (PID_MAX).
constexpr std::int32_t kOwnerIsThread = 1 << 30;

std::uint16_t slot_of_thread(const Layout& w, std::uint32_t id) noexcept {
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    if (is_alive(w.slots[i]) && w.slots[i].thread_id == id) return i;
  }
  return 0;
}

template <typename Act>
bool each_of_group(Layout& w, std::uint32_t group, Act&& act) noexcept {
  bool any = false;
  for (std::uint16_t p = 1; p < kProcessesMax; ++p) {
    if (w.processes[p].state != ProcessState::kAlive || w.processes[p].group != group) continue;
    any = true;
    act(p);
  }
  return any;
}

bool is_alive_process(const Layout& w, std::uint16_t process) noexcept {
  return process != kNoProcess && w.processes[process].state == ProcessState::kAlive;
}

void ring_owner(Layout& w, const ConnectionState& c) noexcept {
  SignalInfo info{};
  info.code = SI_KERNEL;
  const Owner owner = owner_of(c);
  if (owner.id == 0) return;
  if (owner.kind == OwnerKind::kGroup) {
    each_of_group(w, owner.id, [&](std::uint16_t p) { send_signal(w, p, SIGURG, info); });
  } else if (owner.kind == OwnerKind::kThread) {
    const std::uint16_t slot = slot_of_thread(w, owner.id);
    if (slot != 0) send_signal_to_slot(w, Slot{slot}, SIGURG, info);
  } else {
    const std::uint16_t process = find_process(w, owner.id);
    if (is_alive_process(w, process)) send_signal(w, process, SIGURG, info);
  }
}

}  // namespace

std::uint64_t unread_bytes(const ConnectionState& c) noexcept {
  if (!has_mark(c) || (c.urgent & kUrgentInline) != 0) return c.received - c.consumed;
  return bytes_to_mark(c);
}

void note_urgent(Layout& w, std::uint32_t file) noexcept {
  ConnectionState& c = w.files[file].connection;
  CRANE_ASSERT(c.received > c.consumed);
  ring_owner(w, c);
  // As Linux: the byte of a mark that a later one replaces is in the stream, but for one that the
  // reader has come to.
  if (is_at_hidden_byte(c)) drop_hidden_byte(w, file);
  c.urgent = static_cast<std::uint8_t>((c.urgent & kUrgentInline) | kUrgentUnread);
  c.urgent_at = static_cast<std::uint32_t>(c.received - 1);
}

void forget_passed_mark(ConnectionState& c) noexcept {
  if (has_mark(c) && static_cast<std::int32_t>(bytes_to_mark(c)) < 0) c.urgent &= kUrgentInline;
}

int take_urgent(Layout& w, std::uint32_t file, bool peek) noexcept {
  ConnectionState& c = w.files[file].connection;
  if ((c.urgent & kUrgentInline) != 0 || (c.urgent & kUrgentUnread) == 0) return -EINVAL;
  if (c.reset && !c.fin_received) return -ENOTCONN;
  const std::byte byte = input_byte(w, file, bytes_to_mark(c));
  if (!peek) {
    c.urgent = kUrgentRead;
    refresh_readiness(w, file, false);
  }
  return std::to_integer<int>(byte);
}

void set_urgent_inline(Layout& w, std::uint32_t file, bool on) noexcept {
  ConnectionState& c = w.files[file].connection;
  const unsigned others = c.urgent & ~static_cast<unsigned>(kUrgentInline);
  c.urgent = static_cast<std::uint8_t>(others | (on ? kUrgentInline : 0));
  refresh_readiness(w, file, false);
}

bool set_owner(Layout& w, ConnectionState& c, OwnerKind kind, std::uint32_t id) noexcept {
  const auto number = static_cast<std::int32_t>(id);
  if (id != 0 && kind == OwnerKind::kThread) {
    if (slot_of_thread(w, id) == 0) return false;
    c.owner = number | kOwnerIsThread;
  } else if (id != 0 && kind == OwnerKind::kGroup) {
    if (!each_of_group(w, id, [](std::uint16_t) {})) return false;
    c.owner = -number;
  } else {
    if (id != 0 && find_process(w, id) == kNoProcess) return false;
    c.owner = number;
  }
  return true;
}

Owner owner_of(const ConnectionState& c) noexcept {
  if (c.owner < 0) return {OwnerKind::kGroup, static_cast<std::uint32_t>(-c.owner)};
  const bool is_thread = (c.owner & kOwnerIsThread) != 0;
  return {is_thread ? OwnerKind::kThread : OwnerKind::kProcess,
          static_cast<std::uint32_t>(c.owner & ~kOwnerIsThread)};
}

}  // namespace crane::dmt
