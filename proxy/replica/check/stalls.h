// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's decisions about the stall rule (dmt/stall.h).  The leader looks for a thread that has
// the turn and executes no operation, has it probed, proposes PREEMPT when it is held, and
// announces how far its server is (PASSED).  Every replica passes the orders to its server one by
// one, and keeps it from running ahead of what the leader has announced.
//
// The leader also does its part of agreed detachment (dmt/scheduler.h): it proposes ATTACH for
// threads of its server that want to rejoin.
//
// It looks only while a thread has the turn, so an idle replica costs nothing.  Without the rule it
// only notes which thread is stalled, for the status and the log.
//
// The contract with the shell (proxy/host/stall_watch.h) is that of consensus/core/step.h: actions
// are carried out in order and completely before those of a later step, and every event is legal in
// every state.  Proposed answers Propose and Arrived answers LookForArrived, before the next Tick.
// Nothing is allocated per entry or step.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT STALL-1  A leader decides only after its server has admitted its START.  Then it has
//                    passed everything that an earlier leader's server can have passed.  Exception:
//                    a thread was stalled for kLongNs at a clock that no leader announced as
//                    passed; then the earlier leader's server was stalled there too.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dmt/sequence/entry.h"
#include "proxy/replica/deadline.h"

namespace crane::replica {

namespace stalls {

// No limit; as a clock of a PREEMPT: none (dmt/stall.h).
inline constexpr std::uint64_t kNoClock = UINT64_MAX;

// An entry that grants only the turn of an input.
using Proposal = std::variant<PreemptBody, PassedBody, AttachBody>;

// The thread that has the turn.
struct Holder {
  std::uint16_t slot = 0;
  std::uint64_t clock = 0;
  bool in_operation = false;  // it is inside Crane and will leave it: nothing to do
  bool helps = false;         // the rule could help: another thread is runnable, or an entry waits
  bool known = false;         // it was preempted before
};

// --- events

// An entry of the log, in log order.
struct Preempt {
  PreemptBody body{};
};
struct Passed {
  std::uint64_t clock = 0;
};
// The log contains no more orders: all are known.
struct Closed {};
// The server recovered from a checkpoint at `clock`; the part of the log after its entry follows.
// The server may already have obeyed orders of that part, when it ran on until it was quiescent.
struct Restored {
  std::uint64_t passed = 0;
  std::uint64_t clock = 0;
  std::uint64_t obeyed = 0;  // the current Tick::obeyed
};
struct Proposed {
  Proposal entry;
  bool ok = false;
};
// The slots whose threads want to rejoin; valid during the step.
struct Arrived {
  std::span<const AttachBody> slots;
};
// A look at the server.
struct Tick {
  bool leads = false;        // the replica may propose
  bool decides = false;      // STALL-1
  std::uint64_t obeyed = 0;  // orders obeyed so far
  bool idle = false;         // no thread has the turn or wants it
  std::uint64_t clock = 0;  // the clock up to which turns are taken; read after `obeyed` and `idle`
  std::uint64_t leader_clock_limit = 0;  // the clock at which its operations wait
  std::optional<PreemptBody> held;       // the PREEMPT to propose for a thread that a probe holds
  std::optional<Holder> holder;
  std::uint32_t arrivals = 0;  // threads that wanted to rejoin so far
};

using Event = std::variant<Tick, Preempt, Passed, Closed, Restored, Proposed, Arrived>;

// --- actions

struct SetLeaderClockLimit {
  std::uint64_t clock = 0;
};
struct RequestPreemption {
  PreemptBody body{};
};
// The held thread continues.
struct ReleaseHeldThread {};
// Interrupts the process of this slot.
struct Probe {
  std::uint16_t slot = 0;
};
struct Propose {
  Proposal entry;
};
struct LookForArrived {};
// This replica's schedule is not the leader's.
struct Diverged {
  const char* why = "";
};
struct Warn {
  std::string text;
};

using Action = std::variant<SetLeaderClockLimit, RequestPreemption, ReleaseHeldThread, Probe,
                            Propose, LookForArrived, Diverged, Warn>;
using ActionList = std::vector<Action>;

struct Options {
  bool on = false;     // the rule is on; otherwise stalls are only noted
  bool alone = false;  // the group has one replica: there is none to inform
  // A computation of this length is preempted; 0: only loops are looked for.
  std::int64_t computation_ns = 0;
};

}  // namespace stalls

// The thread that is stalled, for the status; slot 0: none.
struct StalledThread {
  std::uint16_t slot = 0;
  std::uint64_t clock = 0;
  std::int64_t since_ns = 0;  // physical
};

class Stalls {
 public:
  explicit Stalls(const stalls::Options& options) noexcept : options_(options) {}

  void step(const stalls::Event& event, std::int64_t now_ns);
  // Returns the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(stalls::ActionList& out);
  // When the next Tick is due; kNever: after the next event.
  std::int64_t deadline_ns() const noexcept { return due_ns_; }
  // True if a Tick has something to do at once: an entry arrived, or the arguments are new.
  bool has_news(std::uint64_t obeyed, std::uint32_t arrivals) const noexcept {
    return news_ || obeyed != obeyed_ || arrivals != seen_arrivals_;
  }

  // For a checkpoint: the clock that the log announces as passed up to the checkpoint's entry.
  std::uint64_t passed() const noexcept { return passed_; }
  const StalledThread& stalled_thread() const noexcept { return stalled_thread_; }

 private:
  void on(const stalls::Tick& tick);
  void on(const stalls::Preempt& entry);
  void on(const stalls::Passed& entry);
  void on(const stalls::Closed&) { closed_ = true; }
  void on(const stalls::Restored& restored);
  void on(const stalls::Proposed& proposed);
  void on(const stalls::Arrived& arrived);

  void hand_out_orders(const stalls::Tick& tick);
  void settle_held(const stalls::Tick& tick);
  void bring_back(const stalls::Tick& tick);
  std::int64_t look(const stalls::Tick& tick);
  std::int64_t report_progress(const stalls::Tick& tick);

  const stalls::Options options_;
  stalls::ActionList actions_;
  std::int64_t now_ns_ = 0;
  std::int64_t due_ns_ = kNever;
  bool news_ = false;
  bool closed_ = false;

  std::deque<PreemptBody> orders_;  // committed, not yet obeyed by this replica's server
  bool published_ = false;          // the first of orders_ was requested
  std::uint64_t obeyed_ = 0;        // Tick::obeyed of the last one
  std::uint64_t restored_ = 0;      // orders before this clock were obeyed before a checkpoint
  std::uint64_t passed_ = 0;        // the clock of the leader's server, according to the log

  // The clock of the last PREEMPT that this replica proposed.
  std::uint64_t proposed_clock_ = stalls::kNoClock;
  std::uint64_t passed_proposed_ = 0;  // the last PASSED that this replica proposed
  std::int64_t reported_at_ns_ = 0;
  std::uint32_t seen_arrivals_ = 0;
  bool led_ = false;
  // Proposed by this leader, not yet admitted by its server.
  std::vector<AttachBody> attach_proposed_;
  StalledThread stalled_thread_;
  std::int64_t probed_at_ns_ = 0;
  bool reported_ = false;
};

}  // namespace crane::replica
