// SPDX-License-Identifier: Apache-2.0
#pragma once
// When the leader asks for the next checkpoint: a pure function of time, log and clients.
//
// Checkpoints follow what clients do: every so often, or when the log has grown by so much.  An
// idle server's timers write entries, too, ten a second and more.  A checkpoint of an idle server
// is worth its time only when so much has piled up that a return would take long to run it again,
// or a store would grow without end: an eighth of what a busy log may grow.
//
// Threads: a plain value.

#include <cstdint>

namespace crane::node {

class CheckpointSchedule {
 public:
  static constexpr std::int64_t kSpacingNs = 2'000'000'000;  // between two for the log's length
  static constexpr std::uint64_t kIdlePart = 8;
  // Between two for a disk with little room, and the least that one of these may cut.
  static constexpr std::int64_t kLowSpacingNs = 5'000'000'000;
  static constexpr std::uint64_t kLowBytes = 1U << 20;

  // 0: not by the clock; not for the log's length.
  CheckpointSchedule(std::int64_t every_ns, std::uint64_t log_bytes) noexcept
      : every_ns_(every_ns), log_bytes_(log_bytes) {}

  // `log_pos`: the end of what is committed; `inputs`: of clients, so far; `low`: the disk of a
  // store has little room, and a checkpoint is what cuts the log.
  bool due(std::int64_t now_ns, std::uint64_t log_pos, std::uint64_t inputs,
           bool low = false) noexcept {
    const bool first = look_at_ns_ == 0;
    const bool wanted = every_ns_ != 0 || log_bytes_ != 0;
    const bool cuts = wanted && low && log_pos >= asked_pos_ + kLowBytes && now_ns >= low_at_ns_;
    if (!first && cuts) {
      low_at_ns_ = now_ns + kLowSpacingNs;
      return asked(now_ns, log_pos, inputs);
    }
    const bool by_clock = every_ns_ != 0 && now_ns >= look_at_ns_;
    const bool spaced = log_bytes_ != 0 && now_ns >= looked_ns_ + kSpacingNs;
    const bool by_log = spaced && log_pos >= looked_pos_ + log_bytes_;
    const bool piled = spaced && log_pos >= asked_pos_ + log_bytes_ / kIdlePart;
    const bool idle = inputs == asked_inputs_;
    if (!first && !(idle ? piled || by_clock : by_clock || by_log)) return false;
    looked_ns_ = now_ns;
    look_at_ns_ = now_ns + (every_ns_ != 0 ? every_ns_ : 1'000'000'000);
    looked_pos_ = log_pos;
    if (first) asked_pos_ = log_pos;
    if (first || (idle && !piled)) return false;
    asked_inputs_ = inputs;
    asked_pos_ = log_pos;
    return true;
  }

 private:
  bool asked(std::int64_t now_ns, std::uint64_t log_pos, std::uint64_t inputs) noexcept {
    looked_ns_ = now_ns;
    look_at_ns_ = now_ns + (every_ns_ != 0 ? every_ns_ : 1'000'000'000);
    looked_pos_ = asked_pos_ = log_pos;
    asked_inputs_ = inputs;
    return true;
  }

  std::int64_t every_ns_;
  std::uint64_t log_bytes_;
  std::int64_t look_at_ns_ = 0;     // by the clock; 0: not looked at yet
  std::int64_t looked_ns_ = 0;      // last time that there was something to decide,
  std::uint64_t looked_pos_ = 0;    // and where the log ended then
  std::uint64_t asked_pos_ = 0;     // where it ended when one was asked for,
  std::uint64_t asked_inputs_ = 0;  // and how many inputs there were before
  std::int64_t low_at_ns_ = 0;      // the next one for a disk with little room, at the earliest
};

}  // namespace crane::node
