// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a replica's server is ended and started again at one place of the log
// (RestartBody), on all replicas: where CRIU refuses the server, what it leaves on its
// files is all that can be kept of it.
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
// Threads: the node's one thread.  Pure: no clock, no I/O but the actions.
// INVARIANT RESTARTER-1  The log is held exactly from the second entry until begin(), which is
//               called once.
// INVARIANT RESTARTER-2  end() is called only when over() was true, with nothing between the two.

#include <cstdint>
#include <functional>

#include "dmt/base/assert.h"
#include "dmt/base/ids.h"

namespace crane::replica {

struct RestartActions {
  // Nothing of the server does anything: it has ended at a turn, or every thread of it sleeps.
  std::function<bool()> over;
  // Notes what goes on, and ends it for the kernel; gone() follows.
  std::function<void()> end;
  // A new one takes its place, and the log goes on.
  std::function<void()> begin;
};

class Restarter {
 public:
  enum class State : std::uint8_t { kIdle, kEnding, kHolding, kWaiting };

  explicit Restarter(RestartActions actions) : actions_(std::move(actions)) {}

  // The first entry is about to be handed to the server; false: there was one already.
  bool end_committed(Index at) {
    if (state_ != State::kIdle) return false;
    state_ = State::kEnding;
    request_at_ = at;
    sigterm_admitted_ = ended_ = false;
    return true;
  }
  // The server admitted an entry.
  void admitted(Index at) {
    sigterm_admitted_ = sigterm_admitted_ || (state_ != State::kIdle && at == request_at_);
  }
  // The server's main process ended at a turn; false: by itself.
  bool server_ended() {
    if (!sigterm_admitted_) return false;
    ended_ = true;
    return true;
  }
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
  // The log is held; `applied` is what the server has admitted.
  void step(Index applied) {
    if (state_ != State::kHolding || applied < at_ || !actions_.over()) return;
    state_ = State::kWaiting;
    actions_.end();  // RESTARTER-2
  }
  // The kernel has ended it, and its files are kept.
  void gone() {
    CRANE_ASSERT(state_ == State::kWaiting);
    state_ = State::kIdle;
    sigterm_admitted_ = ended_ = false;
    actions_.begin();  // RESTARTER-1
  }

  bool holds() const noexcept { return state_ == State::kHolding || state_ == State::kWaiting; }
  State state() const noexcept { return state_; }
  // Whether the second entry can be proposed: the server knows that it has to end.
  bool told() const noexcept { return state_ == State::kEnding && sigterm_admitted_; }
  bool ended() const noexcept { return ended_; }
  Index at() const noexcept { return at_; }

 private:
  const RestartActions actions_;
  State state_ = State::kIdle;
  Index request_at_{}, at_{};
  bool sigterm_admitted_ = false, ended_ = false;
};

}  // namespace crane::replica
