// SPDX-License-Identifier: Apache-2.0
#pragma once
// From where on the log in memory stays whole, so that all replicas of a machine can be lost at
// once and begin again at the newest checkpoint of the machine, or at the log's beginning.
//
//   kept place .. used .. log's end, in parts of the ring: from a half on a checkpoint is urgent
//   (checkpoint_schedule.h); from kFullParts on inputs wait for it; up to kBrimParts there is room
//   for inputs in flight and for what the server needs to become quiescent.
//
// The log is given up only if no checkpoint comes: CRIU refuses the server; kAttempts were given up
// while inputs waited; no server that could be dumped reaches an entry; or the leader's own entries
// have filled the rest.  From then on a lost replica depends on the others; the next checkpoint
// ends that.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT KEEP-1  While the log is kept, inputs wait before it would be overwritten after the
//                   newest known checkpoint.

#include <cstdint>
#include <optional>

#include "consensus/consensus.h"
#include "proxy/replica/mutant.h"

namespace crane::replica {

class LogKeeper {
 public:
  static constexpr std::uint64_t kParts = 32;
  static constexpr std::uint64_t kFullParts = 19, kBrimParts = 23;
  // To look for checkpoints means to read directories.  So it is done only when enough was logged
  // since the last place, and a checkpoint was reported.  Notes may be lost, so it is also done
  // without one: rarely, but often while inputs wait.
  static constexpr std::uint64_t kLookDivisor = 16;
  static constexpr std::int64_t kLookNs = 5'000'000'000, kLookFullNs = 250'000'000;
  static constexpr unsigned kAttempts = 3;

  struct Checkpoint {
    consensus::LogPlace at;
    bool distrusted = false;  // replicas that began at it differed (START-3)
  };
  struct Inputs {
    std::uint64_t log_end = 0;       // the end of the committed log, bytes
    bool refused = false;            // CRIU cannot dump this server
    bool followers_stalled = false;  // the servers of all followers are stuck, and not recovering
    std::uint64_t given_up = 0;      // checkpoints given up so far
    Index compared{};                // up to this entry the replicas were equal
    bool looked = false;             // `newest` is the newest checkpoint of this machine
    std::optional<Checkpoint> newest;
  };
  struct Next {
    std::optional<consensus::LogPlace> keep;  // the log stays whole from here on
    bool discards_log = false;                // the log is no longer kept
  };

  // 0: the log is not kept.
  explicit LogKeeper(std::uint64_t ring_bytes, Mutant mutant = Mutant::kNone) noexcept
      : ring_bytes_(ring_bytes), mutant_(mutant) {}

  // The replica begins at this place.
  void begin(const consensus::LogPlace& at) noexcept { kept_ = at; }

  // A replica has published a checkpoint.
  void on_report() noexcept { published_ = true; }
  // Whether step() needs to know the newest checkpoint.
  bool looks(std::uint64_t log_end, std::int64_t now_ns) noexcept {
    if (ring_bytes_ == 0 || used(log_end) < ring_bytes_ / kLookDivisor) return false;
    if (!published_ && now_ns < looked_ns_ + (full_ ? kLookFullNs : kLookNs)) return false;
    published_ = false;
    looked_ns_ = now_ns;
    return true;
  }
  Next step(const Inputs& seen) noexcept {
    Next actions;
    if (ring_bytes_ == 0) return actions;
    const bool was_full = full_, kept = keeps_;
    if (seen.looked) newest_ = seen.newest;
    const bool newer = newest_ && newest_->at.at.index > kept_.at.index;
    const bool trusted = newer && !newest_->distrusted && newest_->at.at.index <= seen.compared;
    const bool moves = newer && (trusted || full_) && mutant_ != Mutant::kKeepOldPlace;
    if (moves) {
      kept_ = newest_->at;
      // A checkpoint to which the ring does not reach back is of no use.
      keeps_ = parts(seen.log_end) < kBrimParts;
      if (keeps_) actions.keep = kept_;
      actions.discards_log = kept && !keeps_;
    }
    full_ = keeps_ && parts(seen.log_end) >= kFullParts;
    if (full_ && (moves || !was_full)) given_up_ = seen.given_up;
    const bool in_vain = full_ && seen.given_up >= given_up_ + kAttempts;
    const bool brim = parts(seen.log_end) >= kBrimParts;
    if (keeps_ && (seen.refused || in_vain || brim || (full_ && seen.followers_stalled))) {
      keeps_ = full_ = false;
      actions.discards_log = true;
    }
    return actions;
  }
  // Inputs must wait (KEEP-1).
  bool full() const noexcept { return full_ && mutant_ != Mutant::kNeverFull; }
  // A lost replica can begin with what this machine has.
  bool keeps() const noexcept { return keeps_; }

 private:
  std::uint64_t used(std::uint64_t log_end) const noexcept {
    return log_end > kept_.pos ? log_end - kept_.pos : 0;
  }

  std::uint64_t parts(std::uint64_t log_end) const noexcept {
    return used(log_end) / (ring_bytes_ / kParts);
  }

  const std::uint64_t ring_bytes_;
  const Mutant mutant_;
  consensus::LogPlace kept_;
  std::optional<Checkpoint> newest_;  // as of the last look
  bool keeps_ = true;
  bool full_ = false;
  std::uint64_t given_up_ = 0;  // checkpoints given up when the log became full, or its place moved
  bool published_ = false;      // a checkpoint was reported since the last look
  std::int64_t looked_ns_ = -kLookNs;
};

}  // namespace crane::replica
