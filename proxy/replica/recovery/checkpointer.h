// SPDX-License-Identifier: Apache-2.0
#pragma once
// How one replica takes a checkpoint (DESIGN section 7): a state machine around one CHECKPOINT
// entry.
//
//   kIdle --asked--> kPreparing --prepared--> kResting --quiescent--> kDumping
//                      --dumped--> kPublishing --published--> kIdle
//
// What takes long and does not touch the server comes first, while the log goes on.  From
// prepared() on the node HOLDS the log behind the last entry that the server was given, which is
// the checkpoint's.  The server goes on until it needs an entry that is not there, which is the
// same place of its history whenever the others are ahead; once no thread of it is in application
// code it is quiescent, and what is then dumped, copied and noted belongs to the entry's viewstamp.
// After that the log goes on, and only then the files are packed, in a process of their own.  Other
// replicas do nothing at that entry.
//
// Some places are none to stop at (a process between fork and its first operation waits for an
// entry to go on): then the server gets the log entry by entry until it is quiescent behind one of
// them, and that one is the checkpoint's.
//
// A server that has admitted the entry and does not become quiescent in time, a dump that CRIU
// refuses, or the lead coming to this replica: the checkpoint is given up, the log goes on, and the
// reason is told.
//
// Threads: the node's one thread.
// INVARIANT TAKE-1  The log is held exactly from prepared() until ReleaseLog, which every way out
// of
//               kResting and kDumping asks for once.
// INVARIANT TAKE-2  Dump is asked for only when a Look found no blocker, with nothing between the
//               two.

#include <cstdint>
#include <string>

#include "dmt/base/ids.h"
#include "proxy/replica/deadline.h"
#include "proxy/replica/mutant.h"
#include "proxy/replica/step.h"

namespace crane::replica {

// The last one, for the status and the log.
struct CheckpointStatus {
  std::uint64_t taken = 0;      // published by this node
  std::uint64_t failed = 0;     // given up
  Index last{};                 // the entry of the last published one; 0: none
  Index under_way{};            // the entry of the one that is taken now; 0: none
  Index gave_up{};              // the entry of the last one that was given up; 0: none
  std::string why;              // the last one that was given up was so because of this
  bool busy = false;            // it was so because another one was not finished: ask again
  std::int64_t prepare_ns = 0;  // of the last published one: from the entry until it was prepared,
  std::int64_t rest_ns = 0;     // from the place's admission until it was quiescent,
  std::int64_t held_ns = 0;     // from there until the log went on,
  std::int64_t pack_ns = 0;     // from there until it was published
};

class Checkpointer {
 public:
  enum class State : std::uint8_t { kIdle, kPreparing, kResting, kDumping, kPublishing };

  explicit Checkpointer(Mutant mutant = Mutant::kNone) : mutant_(mutant) {}

  // A CHECKPOINT entry for this replica was handed to the server.
  void asked(std::int64_t now_ns, Index at, ActionList& out);
  // It is not even tried.
  void refuse(Index at, const std::string& why, ActionList& out);
  // .. since another one is not finished; the status says that it may be asked for again.
  void refuse_for_now(Index at, ActionList& out);
  // step() follows at once.
  void prepared(std::int64_t now_ns, Index place);
  // One without processes is there (restarter.h), which this machine has no part in.
  void restarted(Index at, std::int64_t pack_ns, ActionList& out);
  // Time has passed.  `leads_others`: clients of others would wait for it.
  void step(bool leads_others, ActionList& out);
  // What the last Look, the last Slide found.
  void looked(std::int64_t now_ns, const Looked& seen, ActionList& out);
  void slid(Index at);
  // In any state from kPreparing to kDumping if there is a `why_not`.
  void dumped(std::int64_t now_ns, const std::string& why_not, ActionList& out);
  // The server is ended, and another one takes its place.
  void server_ends(ActionList& out);
  void published(std::int64_t now_ns, const std::string& why_not, ActionList& out);

  // TAKE-1
  bool holds() const noexcept { return state_ == State::kResting || state_ == State::kDumping; }
  State state() const noexcept { return state_; }
  // When to step at the latest.
  std::int64_t due_ns() const noexcept { return state_ == State::kResting ? look_ns_ : kNever; }
  // The entry that is tried, or was.
  Index at() const noexcept { return at_; }
  const CheckpointStatus& status() const noexcept { return status_; }

 private:
  void give_up(const std::string& why, ActionList& out);
  void enter(State state, std::int64_t now_ns);
  void end();

  const Mutant mutant_;
  State state_ = State::kIdle;
  Index at_{};
  std::int64_t since_ns_ = 0;      // of `state_`; of kResting from admission on
  std::int64_t first_try_ns_ = 0;  // admission of the first entry that was tried
  std::int64_t look_ns_ = 0;       // kResting: when the server is looked at again
  bool admitted_ = false;
  std::int64_t prepare_ns_ = 0, rest_ns_ = 0, held_ns_ = 0;
  CheckpointStatus status_;
};

}  // namespace crane::replica
