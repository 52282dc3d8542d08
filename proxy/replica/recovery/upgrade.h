// SPDX-License-Identifier: Apache-2.0
#pragma once
// The upgrade of a server.  The server ends at one entry of the log; the next one, with another
// command line or on a newer state of the machine's files, takes over its files (restarter.h).
// Until the new server is known to serve it is on trial: no client is let in, so that nothing is
// lost when it is rolled back.  A roll-back is another restart, with the previous command line and
// the previous files of the server and the machine.
//
//   kNone --requested--> kAsked --begun--> kTrial --kept--> kKept
//                                            |  failed      \ a later upgrade begins here, too
//                                            v
//                                          kFailed --begun--> kRolledBack
//
// kept and failed are functions of the log and of the server's turns, so they are the same on all
// replicas: a RESTART entry (kKeep) was admitted before the server ended, or it was not.  A server
// that never reaches a turn (`dead`) takes none on any replica.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT UPGRADE-1  While a server is on trial no port of it is opened to clients.
// INVARIANT UPGRADE-2  A server that is rolled back has served no client.
// INVARIANT UPGRADE-3  If a restart or an upgrade is committed after the entry by which a server
//                      stays, the server stays on every replica, even where it has not admitted
//                      that entry yet: only a leader whose own server has admitted it requests the
//                      next one.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dmt/base/assert.h"
#include "dmt/base/ids.h"

namespace crane::replica {

class Upgrade {
 public:
  struct Server {
    std::vector<std::string> command;
    std::uint32_t files = 0;  // the generation of the machine's files (checkpoint/machine_files.h)
    bool operator==(const Server&) const = default;
  };
  enum class State : std::uint8_t { kNone, kAsked, kTrial, kKept, kFailed, kRolledBack };

  // The entry that ends the server was committed.
  void asked(Index at, Server before, Server next, std::uint32_t patience_s) {
    CRANE_ASSERT(!open());
    *this = Upgrade();
    state_ = State::kAsked;
    entry_ = at;
    before_ = std::move(before);
    next_ = std::move(next);
    patience_s_ = patience_s;
  }
  // The command of the server that begins; nullptr: that of the one that ended.
  const Server* begun() {
    if (state_ == State::kAsked) {
      state_ = State::kTrial;
      return &next_;
    }
    if (state_ != State::kFailed) return nullptr;
    state_ = State::kRolledBack;
    dead_ = false;
    return &before_;
  }
  // kKeep was committed.
  void keep_committed(Index at) {
    if (state_ == State::kTrial) keep_at_ = at;
  }
  // Whether the server on trial stays when it admits this entry.
  bool awaits(Index at) const noexcept {
    return state_ == State::kTrial && value(keep_at_) != 0 && at == keep_at_;
  }
  bool admitted(Index at) {
    if (!awaits(at)) return false;
    state_ = State::kKept;
    return true;
  }
  // The server on trial does not serve.  `dead`: it never took a turn.
  void failed(const std::string& why, bool dead = false) {
    CRANE_ASSERT(undecided());
    if (state_ == State::kTrial) why_ = why;
    state_ = State::kFailed;
    dead_ = dead_ || dead;
  }

  bool on_trial() const noexcept { return state_ == State::kTrial; }
  // The end of this server does not end the group.
  bool undecided() const noexcept { return on_trial() || state_ == State::kFailed; }
  bool rolls_back() const noexcept { return state_ == State::kFailed; }
  bool keeps() const noexcept { return value(keep_at_) != 0; }
  Index kept_at() const noexcept { return keep_at_; }
  // No other upgrade can begin.
  bool open() const noexcept { return state_ == State::kAsked || undecided(); }
  bool dead() const noexcept { return dead_; }
  State state() const noexcept { return state_; }
  Index entry() const noexcept { return entry_; }
  std::uint32_t patience_s() const noexcept { return patience_s_; }
  const std::string& why() const noexcept { return why_; }

 private:
  State state_ = State::kNone;
  Index entry_{}, keep_at_{};
  Server before_, next_;
  std::uint32_t patience_s_ = 0;
  bool dead_ = false;
  std::string why_;
};

// Returns the state's name in status.
const char* name(Upgrade::State state) noexcept;

}  // namespace crane::replica
