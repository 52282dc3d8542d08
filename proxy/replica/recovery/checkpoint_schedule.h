// SPDX-License-Identifier: Apache-2.0
#pragma once
// When the leader requests the next checkpoint: a pure function of time, log, clients, and the time
// that the server took to run the log.
//
// Checkpoints follow the activity of clients: one is due at intervals, or when the log has grown
// enough.  An idle server's timers write entries, too, ten per second and more.  A checkpoint of an
// idle server is worth its cost only when so much has accumulated that a returning replica would
// take long to run it again, or a store would grow without end: an eighth of the growth of a busy
// log.
//
// Megabytes do not show how long a return takes.  So one is also due when the server has run for
// kReplayNs after the newest checkpoint: a lost replica, which shares processors with the others,
// runs that again in about 5 s.  But checkpoints take at most a quarter of the time.  One is always
// due when half of the ring is used after the newest one: a replica that is lost later would find a
// log that does not reach back to it.  If the disk of the leader's store is almost full, one is due
// for each kLowBytes, because a checkpoint cuts the log of the store.
//
// Threads: a plain value.
// INVARIANT SCHEDULE-1  While checkpoints are wanted, the next request follows within kAgainMostNs
//                       after one was given up, or was not reported within kAnswerNs.
// INVARIANT SCHEDULE-2  When half of the ring is used after the newest checkpoint, one has been in
//                       progress for less than kAnswerSoonNs, or the next request follows within
//                       kAgainSoonNs.  When inputs have waited for kAnswerFullNs, another replica
//                       is asked as well, because the first may have been stopped.  One is also due
//                       then if none is in progress, because the newest may no longer exist.

#include <algorithm>
#include <cstdint>

#include "proxy/replica/mutant.h"
#include "proxy/replica/recovery/run_trail.h"

namespace crane::replica {

class CheckpointSchedule {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kSpacingNs = 2 * kSecond;  // between two by the log's length
  static constexpr std::uint64_t kIdlePart = 8;
  // For a disk with little room: the time between two checkpoints, and the least that one must cut.
  static constexpr std::int64_t kLowSpacingNs = 5 * kSecond;
  static constexpr std::uint64_t kLowBytes = 1U << 20;
  static constexpr std::int64_t kReplayNs = 3 * kSecond;
  // After a checkpoint, kReplayNs counts again only after kCostTimes the time that it took, at most
  // kCostMostNs.
  static constexpr std::int64_t kCostTimes = 3, kCostMostNs = 60 * kSecond;
  static constexpr std::int64_t kAnswerNs = 30 * kSecond, kAnswerSoonNs = 5 * kSecond;
  static constexpr std::int64_t kAnswerFullNs = 600'000'000;  // while inputs wait for it
  static constexpr std::int64_t kAgainNs = kSecond, kAgainMostNs = 30 * kSecond;
  static constexpr std::int64_t kAgainSoonNs = 2 * kSecond;

  struct Limits {
    std::int64_t every_ns = 0;     // 0: not by the clock
    std::uint64_t log_bytes = 0;   // 0: not by the log's length
    std::int64_t replay_ns = 0;    // 0: not by the time that a return takes
    std::uint64_t ring_bytes = 0;  // 0: overwritten entries are kept elsewhere
  };
  struct Inputs {
    std::int64_t now_ns = 0;
    std::uint64_t log_pos = 0;  // the end of the committed log
    std::uint64_t inputs = 0;   // inputs of clients so far
    bool low = false;           // a store's disk has little room: a checkpoint cuts its log
    bool full = false;          // inputs wait, because the ring is full after the newest one
  };

  explicit CheckpointSchedule(const Limits& limits, Mutant mutant = Mutant::kNone) noexcept
      : limits_(limits), mutant_(mutant) {}

  // When the log ended at `log_pos`, the server had run for `run_ns` in all.
  void ran(std::uint64_t log_pos, std::int64_t run_ns) noexcept { trail_.at(log_pos, run_ns); }

  // Whether to request one now; if so, asked() or failed() follows.
  bool due(const Inputs& seen) noexcept {
    if (limits_.every_ns == 0 && limits_.log_bytes == 0) return false;
    const bool urgent = is_urgent(seen.log_pos);
    full_ns_ = !seen.full ? 0 : full_ns_ != 0 ? full_ns_ : seen.now_ns;
    if (request_ns_ != 0) {
      const bool other =
          full_ns_ != 0 && seen.now_ns - std::max(full_ns_, request_ns_) >= kAnswerFullNs;
      const bool late = seen.now_ns >= request_ns_ + (urgent ? kAnswerSoonNs : kAnswerNs);
      if ((!late && !other) || mutant_ == Mutant::kForgetFailure) return false;
      failed(seen.now_ns, false);
      return true;
    }
    if (failures_ != 0) {
      if (mutant_ == Mutant::kForgetFailure) return false;
      const std::int64_t most = urgent ? kAgainSoonNs : seen.low ? kLowSpacingNs : kAgainMostNs;
      return seen.now_ns >= failed_ns_ + std::min(most, kAgainNs << std::min(failures_ - 1, 10));
    }
    const bool low = by_low(seen);
    const bool limit = by_limits(seen);
    const bool refused = seen.now_ns < refused_until_ns_;
    const bool waits = full_ns_ != 0 && seen.now_ns - full_ns_ >= kAnswerFullNs;
    return limit || (!refused && (urgent || waits || low || by_replay(seen.now_ns)));
  }
  // A log entry requests a checkpoint from a replica, for any reason.
  void asked(const Inputs& seen) noexcept {
    request_ns_ = std::max<std::int64_t>(seen.now_ns, 1);
    full_ns_ = 0;
    request_inputs_ = seen.inputs;
    under_way_pos_ = seen.log_pos;
    if (seen.low) low_at_ns_ = seen.now_ns + kLowSpacingNs;
    look(seen);
    request_pos_ = seen.log_pos;
  }
  // A checkpoint was taken; its entry ends at `pos`.
  void taken(std::uint64_t pos, std::int64_t now_ns) noexcept {
    newest_pos_ = std::max(newest_pos_, pos);
    failures_ = 0;
    full_ns_ = refused_until_ns_ = 0;
    if (request_ns_ == 0 || pos < under_way_pos_) return;
    took_ns_ = now_ns - request_ns_;
    last_taken_ns_ = now_ns;
    request_ns_ = 0;
  }
  // The requested one was given up, or could not be requested.  `lasting`: the next one will
  // probably fail as well, so for a while one is due only by the clock and the log's length.
  void failed(std::int64_t now_ns, bool lasting) noexcept {
    request_ns_ = 0;
    failures_ = lasting ? 0 : failures_ + 1;
    failed_ns_ = now_ns;
    if (lasting) refused_until_ns_ = now_ns + std::max(limits_.every_ns, kAgainMostNs);
  }

  // The last failure is expected to last for now.
  bool refused(std::int64_t now_ns) const noexcept { return now_ns < refused_until_ns_; }
  bool under_way() const noexcept { return request_ns_ != 0; }
  // Half of the ring is used after the newest checkpoint.
  bool is_urgent(std::uint64_t log_pos) const noexcept {
    return limits_.ring_bytes != 0 && log_pos > newest_pos_ &&
           log_pos - newest_pos_ >= limits_.ring_bytes / 2;
  }

 private:
  void look(const Inputs& seen) noexcept {
    looked_ns_ = seen.now_ns;
    look_at_ns_ = seen.now_ns + (limits_.every_ns != 0 ? limits_.every_ns : kSecond);
    looked_pos_ = seen.log_pos;
  }
  bool by_limits(const Inputs& seen) noexcept {
    const bool first = look_at_ns_ == 0;
    const bool by_clock = limits_.every_ns != 0 && seen.now_ns >= look_at_ns_;
    const bool spaced = limits_.log_bytes != 0 && seen.now_ns >= looked_ns_ + kSpacingNs;
    const bool by_log = spaced && seen.log_pos >= looked_pos_ + limits_.log_bytes;
    const bool piled = spaced && seen.log_pos >= request_pos_ + limits_.log_bytes / kIdlePart;
    const bool idle = seen.inputs == request_inputs_;
    if (!first && !(idle ? piled || by_clock : by_clock || by_log)) return false;
    look(seen);
    if (first) request_pos_ = seen.log_pos;
    return !first && (!idle || piled);
  }
  bool by_low(const Inputs& seen) const noexcept {
    return seen.low && look_at_ns_ != 0 && seen.now_ns >= low_at_ns_ &&
           seen.log_pos >= request_pos_ + kLowBytes;
  }
  bool by_replay(std::int64_t now_ns) const noexcept {
    if (limits_.replay_ns == 0 || look_at_ns_ == 0 || now_ns < looked_ns_ + kSpacingNs)
      return false;
    const std::int64_t rest = std::min(kCostMostNs, kCostTimes * took_ns_);
    return now_ns >= last_taken_ns_ + rest && trail_.since(newest_pos_) >= limits_.replay_ns;
  }

  Limits limits_;
  Mutant mutant_;
  RunTrail trail_;
  std::uint64_t newest_pos_ = 0;    // of the newest checkpoint; 0: there is none
  std::int64_t took_ns_ = 0;        // duration of the last one, from its request on
  std::int64_t last_taken_ns_ = 0;  // when the last one was taken
  std::int64_t request_ns_ = 0;     // when the one in progress was requested; 0: none is
  std::int64_t full_ns_ = 0;        // since when inputs wait for one; 0: they do not
  std::int64_t refused_until_ns_ = 0;
  std::uint64_t under_way_pos_ = 0;  // the end of the log at that request
  int failures_ = 0;                 // consecutive failures
  std::int64_t failed_ns_ = 0;       // the last failure
  std::int64_t low_at_ns_ = 0;     // the earliest time for the next one on a disk with little room
  std::int64_t look_at_ns_ = 0;    // when the interval ends next; 0: not decided yet
  std::int64_t looked_ns_ = 0;     // when a limit was last reached, or one was requested
  std::uint64_t looked_pos_ = 0;   // the end of the log at that time
  std::uint64_t request_pos_ = 0;  // the end of the log at the last request
  std::uint64_t request_inputs_ = 0;  // the inputs before the last request
};

}  // namespace crane::replica
