// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node's part of the stall rule (dmt/stall.h).  The leader's looks for a thread that has the
// turn and takes no operation, has it probed, proposes PREEMPT when it is caught, and tells how far
// its server has come (PASSED).  Every replica's hands the orders to its server, one by one, and
// keeps it from running ahead of what the leader has told.
//
// Also the leader's part of agreed detachment (dmt/scheduler.h): proposes ATTACH for its own
// server's threads that want to rejoin.
//
// Looks only while somebody has the turn: an idle replica costs nothing.  Without the rule it only
// notices who is stalled, for the status and the log.
//
// Threads: the node's one thread.
// INVARIANT STALL-1  A leader does not decide before its own server has admitted its START, and so
//               has passed all that an earlier leader's can have passed (or was stalled for kLongNs
//               at a clock that no leader has told to be passed: then that one stood there too).

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "dmt/layout.h"
#include "dmt/stall.h"

namespace crane::node {

struct StallActions {
  // Interrupts the process of this record.
  std::function<void(std::uint16_t process)> probe;
  // Proposes an entry that grants nothing; false: not now.
  std::function<bool(EntryType type, std::span<const std::byte> body)> propose;
  // This replica's schedule is not the leader's.
  std::function<void(const char* why)> diverged;
};

// The thread that is stalled, for the status; slot 0: none.
struct Standing {
  std::uint16_t slot = 0;
  std::uint64_t clock = 0;
  std::int64_t since_ns = 0;  // physical
};

class StallWatch {
 public:
  StallWatch(dmt::Layout& layout, std::uint8_t replicas, StallActions actions);

  // A PREEMPT or PASSED of the log, in its order; others are ignored.
  void committed(EntryType type, std::span<const std::byte> body);
  // All is known: the log tells nothing new.
  void close() noexcept { closed_ = true; }
  // True when a step has something to do at once: an entry came, or an order was obeyed.
  bool has_news() const noexcept {
    return news_ || dmt::orders_obeyed(w_) != obeyed_ ||
           w_.scheduler.arrivals.load(std::memory_order_relaxed) != seen_arrivals_;
  }

  struct Role {
    bool leads;    // may propose
    bool decides;  // STALL-1
  };
  // Does what there is to do; returns when to look again, kNever: after the next event.
  std::int64_t step(std::int64_t now_ns, Role role);

  // For a checkpoint: as far as the log says up to its entry.
  std::uint64_t passed() const noexcept { return passed_; }
  // The server recovered from one, at `clock`; the log behind the entry follows.  It may have
  // obeyed orders that stand there: the server went on to its rest with them.
  void restore(std::uint64_t passed, std::uint64_t clock) noexcept;

  const Standing& standing() const noexcept { return standing_; }

 private:
  void hand_out_orders(bool leads);
  void settle_caught(bool leads);
  std::int64_t look(std::int64_t now_ns, Role role);
  std::int64_t tell_progress(std::int64_t now_ns);
  void bring_back(bool leads);

  dmt::Layout& w_;
  const bool on_;
  const bool alone_;  // a group of one tells no replica
  const StallActions actions_;
  bool news_ = false;
  bool closed_ = false;

  std::deque<PreemptBody> orders_;  // committed, not yet obeyed here
  bool published_ = false;          // the first of them
  std::uint64_t obeyed_ = 0;        // orders_obeyed() as of the last look
  std::uint64_t restored_ = 0;      // orders before this clock were obeyed before a checkpoint
  std::uint64_t passed_ = 0;        // the leader's server's clock, as far as the log says

  std::uint64_t proposed_clock_ = dmt::kNoClock;  // of the last PREEMPT proposed here
  std::uint64_t passed_proposed_ = 0;             // the last PASSED proposed here
  std::int64_t told_at_ns_ = 0;
  std::uint32_t seen_arrivals_ = 0;
  bool led_ = false;
  std::vector<AttachBody> attach_proposed_;  // proposed by this leader, and not yet admitted here
  Standing standing_;
  std::int64_t probed_at_ns_ = 0;
  bool reported_ = false;
};

}  // namespace crane::node
