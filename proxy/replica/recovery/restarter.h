// SPDX-License-Identifier: Apache-2.0
#pragma once
// The states in which a replica's server is ended and started again at one place of the log
// (RestartBody), on all replicas: where CRIU refuses the server, what it leaves on its files is all
// that can be kept of it.  server_change.h decides by them.
//
//   kIdle --end--> kEnding --begin--> kHolding --over--> kWaiting --gone--> kIdle
//
// At the first entry the server's main process is told to end, as an operator would; the log goes
// on, and with it the server, until it has ended.  The leader proposes the second entry when its
// own has ended, or does not for long.  From there on the log is HELD; when nothing of the server
// can do anything any more it is ended for the kernel, too, its files are kept, and a new one takes
// its place.
//
// A server that ends before it is told to ends the group, as ever; a second entry without a first
// one, proposed by two leaders, means nothing: both are functions of the log.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT RESTARTER-1  The log is held exactly from the second entry until gone().
// INVARIANT RESTARTER-2  A server waits for its end only from over() on: when it had admitted the
//               second entry, and nothing of it did anything.

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
  // Whether admitted() with this entry changes anything.
  bool awaits(Index at) const noexcept { return state_ != State::kIdle && at == request_at_; }
  // The server admitted an entry.
  void admitted(Index at) { sigterm_admitted_ = sigterm_admitted_ || awaits(at); }
  // The server's main process ended at a turn; ignored if it did so by itself.
  void server_ended() { ended_ = ended_ || sigterm_admitted_; }
  // A server on trial (upgrade.h) has ended by itself: as if it had been told to.
  void ended_on_trial() {
    if (state_ == State::kIdle) state_ = State::kEnding;
    sigterm_admitted_ = ended_ = true;
  }
  // The second entry was handed to the server; false: it means nothing.
  bool begin_committed(Index at) {
    if (state_ != State::kEnding) return false;
    state_ = State::kHolding;
    at_ = at;
    return true;
  }
  // Whether it matters if the server is over; `applied` is what it has admitted.
  bool looks(Index applied) const noexcept { return state_ == State::kHolding && applied >= at_; }
  // Nothing of it does anything any more; false: that was known, or is of another time.
  bool over() {
    if (state_ != State::kHolding) return false;
    state_ = State::kWaiting;  // RESTARTER-2
    return true;
  }
  // The kernel has ended it, and its files are kept; false: it was not to end.
  bool gone() {
    if (state_ != State::kWaiting) return false;
    state_ = State::kIdle;
    sigterm_admitted_ = ended_ = false;
    return true;
  }

  bool holds() const noexcept {  // RESTARTER-1
    return state_ == State::kHolding || state_ == State::kWaiting;
  }
  State state() const noexcept { return state_; }
  // The server's end at a turn is what it was told to do.
  bool expects_end() const noexcept { return sigterm_admitted_; }
  // Whether the second entry can be proposed: the server knows that it has to end.
  bool told() const noexcept { return state_ == State::kEnding && sigterm_admitted_; }
  bool ended() const noexcept { return ended_; }
  Index at() const noexcept { return at_; }

 private:
  State state_ = State::kIdle;
  Index request_at_{}, at_{};
  bool sigterm_admitted_ = false, ended_ = false;
};

}  // namespace crane::replica
