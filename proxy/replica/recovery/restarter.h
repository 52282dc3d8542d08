// SPDX-License-Identifier: Apache-2.0
#pragma once
// The states in which a replica's server is ended and started again at one place of the log
// (RestartBody), on all replicas.  Where CRIU refuses the server, the files that it leaves are all
// that can be kept.  server_change.h decides with these states.
//
//   kIdle --end--> kEnding --begin--> kHolding --over--> kWaiting --gone--> kIdle
//
// At the first entry the server's main process is ordered to end, as an operator would do it.  The
// log continues, and with it the server, until it has ended.  The leader proposes the second entry
// when its own server has ended, or has not for a long time.  From there on the log is HELD.  When
// no part of the server can run any more, it is also ended in the kernel, its files are kept, and a
// new server replaces it.
//
// If a server ends before it was ordered to, the group ends, as always.  A second entry without a
// first one, proposed by two leaders, has no effect: both are functions of the log.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT RESTARTER-1  The log is held exactly from the second entry until has_ended().
// INVARIANT RESTARTER-2  A server waits for its end only from over() on: when it had admitted the
//                        second entry, and no part of it ran.

#include <cstdint>

#include "dmt/base/ids.h"

namespace crane::replica {

class Restarter {
 public:
  enum class State : std::uint8_t { kIdle, kEnding, kHolding, kWaiting };

  // The first entry is about to be handed to the server; false: there was one already.
  bool end_committed(Index at) {
    if (state_ != State::kIdle) return false;
    state_ = State::kEnding;
    request_at_ = at;
    sigterm_admitted_ = ended_ = false;
    return true;
  }
  // Whether admitted() with this entry has an effect.
  bool awaits(Index at) const noexcept { return state_ != State::kIdle && at == request_at_; }
  // The server admitted an entry.
  void admitted(Index at) { sigterm_admitted_ = sigterm_admitted_ || awaits(at); }
  // The server's main process ended at a turn; ignored if it was not ordered to.
  void server_ended() { ended_ = ended_ || sigterm_admitted_; }
  // A server on trial (upgrade.h) has ended unasked; treated as if it had been ordered to.
  void ended_on_trial() {
    if (state_ == State::kIdle) state_ = State::kEnding;
    sigterm_admitted_ = ended_ = true;
  }
  // The second entry was handed to the server; false: it has no effect.
  bool begin_committed(Index at) {
    if (state_ != State::kEnding) return false;
    state_ = State::kHolding;
    at_ = at;
    return true;
  }
  // Whether the question of over() is open; `applied` is the last entry that the server admitted.
  bool looks(Index applied) const noexcept { return state_ == State::kHolding && applied >= at_; }
  // No part of the server runs any more; false: this was known, or belongs to another restart.
  bool over() {
    if (state_ != State::kHolding) return false;
    state_ = State::kWaiting;  // RESTARTER-2
    return true;
  }
  // The kernel has ended it, and its files are kept; false: it was not being ended.
  bool has_ended() {
    if (state_ != State::kWaiting) return false;
    state_ = State::kIdle;
    sigterm_admitted_ = ended_ = false;
    return true;
  }

  bool holds() const noexcept {  // RESTARTER-1
    return state_ == State::kHolding || state_ == State::kWaiting;
  }
  State state() const noexcept { return state_; }
  // The server was ordered to end at a turn.
  bool expects_end() const noexcept { return sigterm_admitted_; }
  // Whether the second entry can be proposed: the server knows that it has to end.
  bool was_notified() const noexcept { return state_ == State::kEnding && sigterm_admitted_; }
  bool ended() const noexcept { return ended_; }
  Index at() const noexcept { return at_; }

 private:
  State state_ = State::kIdle;
  Index request_at_{}, at_{};
  bool sigterm_admitted_ = false, ended_ = false;
};

}  // namespace crane::replica
