// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the stall rule (dmt/stall.h) has a node decide.  The leader's looks for a thread that has
// the turn and takes no operation, has it probed, proposes PREEMPT when it is held, and tells how
// far its server has come (PASSED).  Every replica's hands the orders to its server, one by one,
// and keeps it from running ahead of what the leader has told.
//
// Also the leader's part of agreed detachment (dmt/scheduler.h): proposes ATTACH for its own
// server's threads that want to rejoin.
//
// Looks only while a thread has the turn: an idle replica costs nothing.  Without the rule it only
// notices which thread is stalled, for the status and the log.
//
// The contract with the shell (proxy/host/stall_watch.h) is that of consensus/core/step.h: actions
// are carried out in order and completely before those of a later step, every event is legal in
// every state.  Each Propose is answered by Proposed, LookForArrived by Arrived, before the next
// Tick.  Nothing is allocated per entry or step.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT STALL-1  A leader does not decide before its own server has admitted its START, and so
//               has passed all that an earlier leader's can have passed (or was stalled for kLongNs
//               at a clock that no leader has told to be passed: then that one stood there too).

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

// No limit, and no clock of a PREEMPT (dmt/stall.h).
inline constexpr std::uint64_t kNoClock = UINT64_MAX;

// An entry that grants no turn but what an input does.
using Proposal = std::variant<PreemptBody, PassedBody, AttachBody>;

// The thread that has the turn.
struct Holder {
  std::uint16_t slot = 0;
  std::uint64_t clock = 0;
  bool in_operation = false;  // within Crane: nothing to be done, it will come out
  bool helps = false;         // the rule could: another thread is runnable, or an entry waits
  bool known = false;         // it was preempted before
};

// --- events

// Of the log, in its order.
struct Preempt {
  PreemptBody body{};
};
struct Passed {
  std::uint64_t clock = 0;
};
// The log tells nothing new: all is known.
struct Closed {};
// The server recovered from a checkpoint, at `clock`; the log behind the entry follows.  It may
// have obeyed orders that stand there: the server went on to its rest with them.
struct Restored {
  std::uint64_t passed = 0;
  std::uint64_t clock = 0;
  std::uint64_t obeyed = 0;  // Tick::obeyed, now
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
  bool leads = false;                    // may propose
  bool decides = false;                  // STALL-1
  std::uint64_t obeyed = 0;              // orders, in all
  bool idle = false;                     // no thread has the turn, nor wants it
  std::uint64_t clock = 0;               // as far as its turns are taken, read after the two before
  std::uint64_t leader_clock_limit = 0;  // the clock that its operations wait at
  std::optional<PreemptBody> held;       // of a thread that a probe has caught: what to propose
  std::optional<Holder> holder;
  std::uint32_t arrivals = 0;  // of threads that want to rejoin, so far
};

using Event = std::variant<Tick, Preempt, Passed, Closed, Restored, Proposed, Arrived>;

// --- actions

struct SetLeaderClockLimit {
  std::uint64_t clock = 0;
};
struct RequestPreemption {
  PreemptBody body{};
};
// The thread that is held goes on.
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
  bool on = false;                  // the rule; else it only notices
  bool alone = false;               // a group of one tells no replica
  std::int64_t computation_ns = 0;  // a computation is one that long; 0: only loops are looked for
};

}  // namespace stalls

// The thread that is stalled, for the status; slot 0: none.
struct Standing {
  std::uint16_t slot = 0;
  std::uint64_t clock = 0;
  std::int64_t since_ns = 0;  // physical
};

class Stalls {
 public:
  explicit Stalls(const stalls::Options& options) noexcept : options_(options) {}

  void step(const stalls::Event& event, std::int64_t now_ns);
  // Gives the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(stalls::ActionList& out);
  // When the next Tick is due; kNever: after the next event.
  std::int64_t deadline_ns() const noexcept { return due_ns_; }
  // True when a Tick has something to do at once: an entry came, or what it sees is new.
  bool has_news(std::uint64_t obeyed, std::uint32_t arrivals) const noexcept {
    return news_ || obeyed != obeyed_ || arrivals != seen_arrivals_;
  }

  // For a checkpoint: as far as the log says up to its entry.
  std::uint64_t passed() const noexcept { return passed_; }
  const Standing& standing() const noexcept { return standing_; }

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
  std::int64_t tell_progress(const stalls::Tick& tick);

  const stalls::Options options_;
  stalls::ActionList actions_;
  std::int64_t now_ns_ = 0;
  std::int64_t due_ns_ = kNever;
  bool news_ = false;
  bool closed_ = false;

  std::deque<PreemptBody> orders_;  // committed, not yet obeyed here
  bool published_ = false;          // the first of them
  std::uint64_t obeyed_ = 0;        // Tick::obeyed of the last one
  std::uint64_t restored_ = 0;      // orders before this clock were obeyed before a checkpoint
  std::uint64_t passed_ = 0;        // the leader's server's clock, as far as the log says

  std::uint64_t proposed_clock_ = stalls::kNoClock;  // of the last PREEMPT proposed here
  std::uint64_t passed_proposed_ = 0;                // the last PASSED proposed here
  std::int64_t told_at_ns_ = 0;
  std::uint32_t seen_arrivals_ = 0;
  bool led_ = false;
  std::vector<AttachBody> attach_proposed_;  // proposed by this leader, and not yet admitted here
  Standing standing_;
  std::int64_t probed_at_ns_ = 0;
  bool reported_ = false;
};

}  // namespace crane::replica
