// SPDX-License-Identifier: Apache-2.0
#pragma once
// How one replica takes a checkpoint: a state machine for one CHECKPOINT entry.
//
//   kIdle --requested--> kPreparing --prepared--> kResting --quiescent--> kDumping
//                      --dumped--> kPublishing --published--> kIdle
//
// Steps that take long and do not touch the server come first, while the log continues.  From
// prepared() on the node HOLDS the log after the last entry that the server received; that entry is
// the checkpoint's.  The server continues until it needs an entry that it does not have, which is
// the same place of its history whenever the other servers are ahead.  When none of its threads is
// in application code, it is quiescent: what is then dumped, copied and noted belongs to the
// entry's viewstamp.  After that the log continues, and the files are packed in a separate process.
// Other replicas do nothing at that entry.
//
// The server cannot stop at some places: a process between fork and its first operation needs
// another entry to continue.  Then the server receives the log entry by entry until it is quiescent
// after one, which becomes the checkpoint's entry.
//
// The checkpoint is given up if a server that has admitted the entry does not become quiescent in
// time, if CRIU refuses the dump, or if this replica becomes the leader.  Then the log continues,
// and the reason is reported.
//
// Threads: the node's one thread.
// INVARIANT TAKE-1  The log is held exactly from prepared() until ReleaseLog.  Every exit from
//                   kResting and kDumping requests ReleaseLog once.
// INVARIANT TAKE-2  Dump is requested only directly after a Look that found no blocker.

#include <cstdint>
#include <string>

#include "dmt/base/ids.h"
#include "proxy/replica/deadline.h"
#include "proxy/replica/mutant.h"
#include "proxy/replica/step.h"

namespace crane::replica {

// The results so far, for the status and the log.
struct CheckpointStatus {
  std::uint64_t taken = 0;      // published by this node
  std::uint64_t failed = 0;     // given up
  Index last{};                 // the entry of the last published one; 0: none
  Index under_way{};            // the entry of the one in progress; 0: none
  Index gave_up{};              // the entry of the last one that was given up; 0: none
  std::string why;              // why the last one was given up
  bool busy = false;            // it was given up because of the previous one: request it again
  std::int64_t prepare_ns = 0;  // last published one: from its entry until it was prepared
  std::int64_t rest_ns = 0;     // then from the admission of its place until quiescence
  std::int64_t held_ns = 0;     // then until the log continued
  std::int64_t pack_ns = 0;     // then until it was published
};

class Checkpointer {
 public:
  enum class State : std::uint8_t { kIdle, kPreparing, kResting, kDumping, kPublishing };

  explicit Checkpointer(Mutant mutant = Mutant::kNone) : mutant_(mutant) {}

  // A CHECKPOINT entry for this replica was handed to the server.
  void asked(std::int64_t now_ns, Index at, ActionList& out);
  // Gives the checkpoint up without an attempt.
  void refuse(Index at, const std::string& why, ActionList& out);
  // Gives the checkpoint up because the previous one is not finished; the status says that it may
  // be requested again.
  void refuse_for_now(Index at, ActionList& out);
  // step() must follow at once.
  void prepared(std::int64_t now_ns, Index place);
  // A checkpoint without processes was taken (restarter.h); this machine did not take part.
  void restarted(Index at, std::int64_t pack_ns, ActionList& out);
  // Time has passed.  `leads_others`: this replica leads, and clients would wait for the
  // checkpoint.
  void step(bool leads_others, ActionList& out);
  // The results of the last Look and the last Slide.
  void looked(std::int64_t now_ns, const Looked& seen, ActionList& out);
  void slid(Index at);
  // Legal in any state from kPreparing to kDumping if there is a `why_not`.
  void dumped(std::int64_t now_ns, const std::string& why_not, ActionList& out);
  // The server is being ended, and another one replaces it.
  void server_ends(ActionList& out);
  void published(std::int64_t now_ns, const std::string& why_not, ActionList& out);

  // TAKE-1
  bool holds() const noexcept { return state_ == State::kResting || state_ == State::kDumping; }
  State state() const noexcept { return state_; }
  // The latest time for the next step().
  std::int64_t due_ns() const noexcept { return state_ == State::kResting ? look_ns_ : kNever; }
  // The entry of the current or last attempt.
  Index at() const noexcept { return at_; }
  const CheckpointStatus& status() const noexcept { return status_; }

 private:
  void give_up(const std::string& why, ActionList& out);
  void enter(State state, std::int64_t now_ns);
  void end();

  const Mutant mutant_;
  State state_ = State::kIdle;
  Index at_{};
  std::int64_t since_ns_ = 0;      // when `state_` began; in kResting: the admission
  std::int64_t first_try_ns_ = 0;  // admission of the entry of the first attempt
  std::int64_t look_ns_ = 0;       // kResting: when to look at the server again
  bool admitted_ = false;
  std::int64_t prepare_ns_ = 0, rest_ns_ = 0, held_ns_ = 0;
  CheckpointStatus status_;
};

}  // namespace crane::replica
