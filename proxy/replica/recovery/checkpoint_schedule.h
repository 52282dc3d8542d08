// SPDX-License-Identifier: Apache-2.0
#pragma once
// When the leader asks for the next checkpoint: a pure function of time, log, clients, and how long
// the server took to run the log.
//
// Checkpoints follow what clients do: every so often, or when the log has grown by so much.  An
// idle server's timers write entries, too, ten a second and more.  A checkpoint of an idle server
// is worth its time only when so much has piled up that a return would take long to run it again,
// or a store would grow without end: an eighth of what a busy log may grow.
//
// Megabytes do not say how long a return takes.  So one is due as well when the server has run for
// kReplayNs behind the newest checkpoint: a lost replica, which shares processors with the others,
// runs that again in about 5 s.  But checkpoints take at most a quarter of the time.  And one is
// due whatever else holds when half of the ring is used behind the newest one: a replica that is
// lost later would find a log that does not reach back to it.  Where the disk of the leader's store
// has little room, one is due for each kLowBytes, as a checkpoint cuts the log there.
//
// Threads: a plain value.
// INVARIANT SCHEDULE-1  While checkpoints are wanted, one that was asked for and given up, or not
//                       heard of within kAnswerNs, is followed by the next request within
//                       kAgainMostNs.
// INVARIANT SCHEDULE-2  When half of the ring is used behind the newest checkpoint, one has been
//                       under way for less than kAnswerSoonNs, or the next request follows within
//                       kAgainSoonNs; another replica is asked as well when inputs have waited
//                       for kAnswerFullNs, as the first may have been stopped; and one is due
//                       then where none is under way, as the newest may not be there any more.

#include <algorithm>
#include <cstdint>

#include "proxy/replica/mutant.h"
#include "proxy/replica/recovery/run_trail.h"

namespace crane::replica {

class CheckpointSchedule {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kSpacingNs = 2 * kSecond;  // between two for the log's length
  static constexpr std::uint64_t kIdlePart = 8;
  // Between two for a disk with little room, and the least that one of these may cut.
  static constexpr std::int64_t kLowSpacingNs = 5 * kSecond;
  static constexpr std::uint64_t kLowBytes = 1U << 20;
  static constexpr std::int64_t kReplayNs = 3 * kSecond;
  // Behind one, for kReplayNs, so many times as long as it took; but no longer than the other.
  static constexpr std::int64_t kCostTimes = 3, kCostMostNs = 60 * kSecond;
  static constexpr std::int64_t kAnswerNs = 30 * kSecond, kAnswerSoonNs = 5 * kSecond;
  static constexpr std::int64_t kAnswerFullNs = 600'000'000;  // while inputs wait for it
  static constexpr std::int64_t kAgainNs = kSecond, kAgainMostNs = 30 * kSecond;
  static constexpr std::int64_t kAgainSoonNs = 2 * kSecond;

  struct Limits {
    std::int64_t every_ns = 0;     // 0: not by the clock
    std::uint64_t log_bytes = 0;   // 0: not for the log's length
    std::int64_t replay_ns = 0;    // 0: not for the time that a return takes
    std::uint64_t ring_bytes = 0;  // 0: what is overwritten there can be had elsewhere
  };
  struct Inputs {
    std::int64_t now_ns = 0;
    std::uint64_t log_pos = 0;  // the end of what is committed
    std::uint64_t inputs = 0;   // of clients, so far
    bool low = false;           // a store's disk has little room: a checkpoint cuts the log there
    bool full = false;          // inputs wait, as the ring is full behind the newest
  };

  explicit CheckpointSchedule(const Limits& limits, Mutant mutant = Mutant::kNone) noexcept
      : limits_(limits), mutant_(mutant) {}

  // The server has run for so long in all when the log ended there.
  void ran(std::uint64_t log_pos, std::int64_t run_ns) noexcept { trail_.at(log_pos, run_ns); }

  // Whether to ask now; asked() or failed() follows if so.
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
  // An entry of the log asks a replica for one, for whatever reason.
  void asked(const Inputs& seen) noexcept {
    request_ns_ = std::max<std::int64_t>(seen.now_ns, 1);
    full_ns_ = 0;
    request_inputs_ = seen.inputs;
    under_way_pos_ = seen.log_pos;
    if (seen.low) low_at_ns_ = seen.now_ns + kLowSpacingNs;
    look(seen);
    request_pos_ = seen.log_pos;
  }
  // One is there, whose entry ends at `pos`.
  void taken(std::uint64_t pos, std::int64_t now_ns) noexcept {
    newest_pos_ = std::max(newest_pos_, pos);
    failures_ = 0;
    full_ns_ = refused_until_ns_ = 0;
    if (request_ns_ == 0 || pos < under_way_pos_) return;
    took_ns_ = now_ns - request_ns_;
    last_taken_ns_ = now_ns;
    request_ns_ = 0;
  }
  // The one that was asked for was given up, or could not be asked for.  `lasting`: so will the
  // next one be, as far as is known: it is due by the clock and the log's length alone for a while.
  void failed(std::int64_t now_ns, bool lasting) noexcept {
    request_ns_ = 0;
    failures_ = lasting ? 0 : failures_ + 1;
    failed_ns_ = now_ns;
    if (lasting) refused_until_ns_ = now_ns + std::max(limits_.every_ns, kAgainMostNs);
  }

  // What the last one that was asked for ended with will be so for a while.
  bool refused(std::int64_t now_ns) const noexcept { return now_ns < refused_until_ns_; }
  bool under_way() const noexcept { return request_ns_ != 0; }
  // Half of the ring is used behind the newest checkpoint.
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
  std::int64_t took_ns_ = 0;        // the last one, from its request on,
  std::int64_t last_taken_ns_ = 0;  // until then
  std::int64_t request_ns_ = 0;     // when the one under way was asked for; 0: none is
  std::int64_t full_ns_ = 0;        // since when inputs wait for one; 0: they do not
  std::int64_t refused_until_ns_ = 0;
  std::uint64_t under_way_pos_ = 0;   // where the log ended then
  int failures_ = 0;                  // in a row
  std::int64_t failed_ns_ = 0;        // the last of them
  std::int64_t low_at_ns_ = 0;        // the next one for a disk with little room, at the earliest
  std::int64_t look_at_ns_ = 0;       // by the clock; 0: not looked at yet
  std::int64_t looked_ns_ = 0;        // last time that there was something to decide,
  std::uint64_t looked_pos_ = 0;      // and where the log ended then
  std::uint64_t request_pos_ = 0;     // where it ended when one was asked for,
  std::uint64_t request_inputs_ = 0;  // and how many inputs there were before
};

}  // namespace crane::replica
