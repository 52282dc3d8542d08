// SPDX-License-Identifier: Apache-2.0
#include "dmt/admission.h"

#include <csignal>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "dmt/base/log.h"
#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/names.h"
#include "dmt/node_link.h"
#include "dmt/outbound.h"
#include "dmt/posix_timers.h"
#include "dmt/processes.h"
#include "dmt/schedule_hash.h"
#include "dmt/sequence/hash_entry.h"
#include "dmt/sequence/output.h"
#include "dmt/slices.h"
#include "dmt/slots.h"
#include "dmt/timers.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

constexpr std::uint32_t kSignalMax = 64;

template <typename Body>
Body body_as(Layout& w, std::span<const std::byte> body) noexcept {
  if (body.size() < sizeof(Body)) fence(w, "an entry of the Paxos sequence is too short");
  Body result;
  std::memcpy(&result, body.data(), sizeof result);
  return result;
}

void admit_start(Layout& w, const SequenceHeader& header, const StartBody& body) noexcept {
  SchedulerState& s = w.scheduler;
  if (value(s.view) == 0) {
    // The first START of the group fixes the origin of time and randomness (D6, D7).
    s.now_ns = static_cast<std::int64_t>(header.stamp_ns);
    s.wall_offset_ns = body.wall_offset_ns;
    std::memcpy(s.seed, body.seed, sizeof s.seed);
  }
  CRANE_ASSERT(header.viewstamp.view > s.view);
  s.view = header.viewstamp.view;
  reset_connections(w, body.resets);  // C8, rule 7
}

void admit_data(Layout& w, std::span<const std::byte> body) noexcept {
  const auto data = body_as<DataBody>(w, body);
  admit_data(w, connection_of(data), body.data() + sizeof data, body.size() - sizeof data,
             is_urgent(data));
}

void admit_hash(Layout& w, std::span<const std::byte> body) noexcept {
  if (body.empty()) return;
  const auto head = body_as<HashEntryHead>(w, body);
  if ((head.flags & HashEntryHead::kRestarts) != 0) w.scheduler.hash = 0;
}

void apply(Layout& w, const SequenceHeader& header, std::span<const std::byte> body) noexcept {
  switch (header.type) {
    case EntryType::kStart:
      return admit_start(w, header, body_as<StartBody>(w, body));
    case EntryType::kConnect:
      return admit_connect(w, header.viewstamp.index, body_as<ConnectBody>(w, body));
    case EntryType::kData:
      return admit_data(w, body);
    case EntryType::kShutdown:
      return admit_shutdown(w, body_as<ConnBody>(w, body).conn);
    case EntryType::kReset:
      return admit_reset(w, body_as<ConnBody>(w, body).conn);
    case EntryType::kWindow: {
      const auto window = body_as<WindowBody>(w, body);
      return admit_window(w, window.conn, window.total);
    }
    case EntryType::kSignal: {
      const auto sent = body_as<SignalBody>(w, body);
      if (sent.signo < 1 || sent.signo > kSignalMax)
        fence(w, "a SIGNAL entry has an invalid signal number");
      const std::uint16_t target = sent.pid == 0 ? kMainProcess : find_process(w, sent.pid);
      if (target != kNoProcess) send_signal(w, target, static_cast<int>(sent.signo));
      return;
    }
    case EntryType::kRestart: {  // the node does the rest
      const auto restart = body_as<RestartBody>(w, body);
      if (restart.step == RestartBody::kEnd) send_signal(w, kMainProcess, SIGTERM);
      return;
    }
    case EntryType::kConfig:
    case EntryType::kBubble:
    case EntryType::kTime:
    case EntryType::kPreempt:  // the node has handled it (stall.h)
    case EntryType::kPassed:
    case EntryType::kEarlyPoint:  // the node has stored it (slices.h)
    case EntryType::kCheckpoint:  // the node holds back later entries
      return;                     // they only carry time and grants
    case EntryType::kHash:
      return admit_hash(w, body);
    case EntryType::kAttach: {
      const auto target = body_as<AttachBody>(w, body);
      return attach(w, target.slot, target.number);
    }
    case EntryType::kTaken:
      return admit_taken(w, body);
    case EntryType::kConnected:
      return admit_connected(w, body_as<ConnectedBody>(w, body));
    case EntryType::kResolved:
      return admit_resolved(w, body_as<ResolvedBody>(w, body));
    case EntryType::kPort:
      return admit_port(w, body_as<PortBody>(w, body));
    case EntryType::kTickPoint:
      return admit_tick_point(w, body_as<TickPoint>(w, body));
  }
  fence(w, "an entry of the Paxos sequence has an unknown type");
}

// Reports clock and schedule hash at this log index to the node, between the outputs before and
// after.
void publish_point(Layout& w, Index index, bool notify) noexcept {
  const OutputHeader point{
      OutputType::kAdmitted, {}, value(index), w.scheduler.hash, w.scheduler.clock};
  std::memcpy(reserve_output(w, sizeof point).data(), &point, sizeof point);
  notify ? commit_output(w, sizeof point) : commit_quietly(w, sizeof point);
}

}  // namespace

void fire_timers(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  while (s.timers_armed > 0) {
    const std::uint16_t timer = w.timer_heap[0];
    const TimerRecord& t = w.timers[timer];
    if (t.deadline_ns > s.now_ns) break;
    const std::uint32_t owner = t.owner;
    const TimerKind kind = t.kind;
    disarm_timer(w, timer);
    switch (kind) {
      case TimerKind::kSlot:
        wake(w, Slot{static_cast<std::uint16_t>(owner)}, WakeReason::kTimeout);
        break;
      case TimerKind::kFile:
        timer_expired(w, owner);
        break;
      case TimerKind::kProcess:
        alarm_expired(w, static_cast<std::uint16_t>(owner));
        break;
      case TimerKind::kPosix:
        posix_timer_expired(w, owner);
        break;
      case TimerKind::kFree:
        CRANE_ASSERT(kind != TimerKind::kFree);
    }
  }
}

bool admit_next(Layout& w) noexcept {
  Ring ring(w.header.sequence, reinterpret_cast<std::byte*>(&w));
  const std::span<const std::byte> record = ring.front();
  if (record.empty()) return false;
  SequenceHeader header;
  if (record.size() < sizeof header) fence(w, "a record of the Paxos sequence is too short");
  std::memcpy(&header, record.data(), sizeof header);
  const std::span<const std::byte> body = record.subspan(sizeof header);
  const std::uint32_t crc = header.crc;
  SequenceHeader summed = header;
  summed.crc = 0;
  if (header.body_bytes != body.size() ||
      crc32c(body.data(), body.size(), crc32c(&summed, sizeof summed)) != crc) {
    fence(w, "a record of the Paxos sequence is damaged");
  }
  SchedulerState& s = w.scheduler;
  s.awaited = 0;
  if (header.type == EntryType::kAttach) {
    const auto target = body_as<AttachBody>(w, body);
    if (!may_attach(w, target.slot, target.number)) {
      s.awaited = static_cast<std::uint16_t>(target.slot);  // as if the entry had not arrived
      return false;
    }
  }
  CRANE_ASSERT(header.viewstamp.index > s.admitted.index);
  s.admitted = header.viewstamp;
  ++s.admissions;
  if (value(s.view) != 0) {
    const auto stamp = static_cast<std::int64_t>(header.stamp_ns);
    if (stamp > s.now_ns) {
      const std::int64_t passed = stamp - s.now_ns;
      s.now_ns = stamp;
      // A thread was runnable, so the time was used; it counts for the thread that had the turn
      // last.
      if (s.run_queue.head != kNone && s.last_slot != 0) use_processor(w, s.last_slot, passed);
    }
    // Also if the stamp is old: threads may have read the clock past a deadline (rule 8).
    fire_timers(w);
    if (header.type == EntryType::kTime) release_soft_barriers(w);
  }
  apply(w, header, body);
  s.hash = fold_admission(s.hash, value(header.viewstamp.index), s.clock);
  publish_point(w, header.viewstamp.index, header.type == EntryType::kHash);
  grant_slice(w, header.type);
  s.grant_left = header.grant;
  s.grant_low_mark = header.grant / 2;
  s.grant_low.store(0, std::memory_order_relaxed);
  note_object(w, 0);  // the next turn's object is not the one that the entry woke
  ring.pop();
  s.applied_index.store(value(header.viewstamp.index), std::memory_order_release);
  return true;
}

}  // namespace crane::dmt
