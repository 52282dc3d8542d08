// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares what a server does when its history runs again with what was recorded of it, as it
// comes: the first difference is known before anything follows it.
//
// Threads: one object, one thread.  Pure: no clock, no I/O.
//
// INVARIANT LIVE-V6  Everything the server puts out is either compared with the recording, or lies
// behind
//               the end of a recording that ends early, and then it is counted as not compared.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/record/output_hash.h"
#include "proxy/record/output_record.h"
#include "proxy/record/schedule_compare.h"
#include "proxy/record/schedule_record.h"
#include "proxy/record/verification.h"

namespace crane::proxy {

enum class ReplayPart : std::uint8_t { kSchedule, kOutput, kDigest };

struct ReplayDifference {
  ReplayPart part{};
  // kSchedule: the first entry at whose admission they differ; kOutput: the last one admitted
  // before; kDigest: the cut.
  std::uint64_t index = 0;
  std::string text;  // both sides
  // kSchedule, when both have a clock: turns up to this one are equal by their hash, and where
  // either stood at the entry.
  std::uint64_t after = 0, own = 0, recorded = 0;
};

class ReplayCheck {
 public:
  // Both outlive it.
  ReplayCheck(const Recording& outputs, const RecordedSchedule& schedule);

  // Begins behind a checkpoint, with the connections that were open there.
  void begin_behind(std::uint64_t index, const std::vector<OutputStream>& open);

  void connected(ConnId conn, const ConnectBody& body);
  void output(const OutputHeader& header, std::span<const std::byte> bytes);
  // The server's own digest at a cut, and what the log says of the same one: this replica's, or the
  // group's.
  void digest(const Digest& own, const Digest& recorded);
  // No thread has the turn, and nothing follows.  `whole`: the history ran to its end.
  void at_rest(const SchedulePoint& point, bool whole);

  const std::optional<ReplayDifference>& difference() const noexcept { return difference_; }
  // The first turn that differs, among turns that were recorded on both sides.
  const std::optional<TurnDifference>& turn() const noexcept { return turn_; }
  // Looks for it among these turns of the server, `first`, `first` + 1, ...
  void compare_turns(std::uint64_t first, std::span<const TurnRecord> turns);

  std::uint64_t points() const noexcept { return points_; }        // compared
  std::uint64_t bytes() const noexcept { return bytes_; }          // compared
  std::uint64_t digests() const noexcept { return digests_; }      // compared
  std::uint64_t last() const noexcept { return last_.index; }      // admitted and equal
  std::uint64_t equal_cut() const noexcept { return equal_cut_; }  // the last equal digest's
  bool rest_compared() const noexcept { return rest_compared_; }
  bool beyond() const noexcept { return beyond_; }  // something was not compared (LIVE-V6)

 private:
  void connected(ConnId conn, std::uint16_t port, const std::string& peer);
  struct Place {
    std::size_t piece = 0, offset = 0;
    std::uint64_t done = 0;
  };
  void admitted(const SchedulePoint& point);
  void written(std::uint64_t conn, std::span<const std::byte> bytes);
  void closed(std::uint64_t conn, const char* how);
  void check_all_written();
  void differs(ReplayPart part, std::uint64_t index, std::string text);
  void skip(std::uint64_t conn, std::uint64_t bytes);

  const Recording& outputs_;
  const RecordedSchedule& schedule_;
  RecordedSchedule::Cursor cursor_;
  std::unordered_map<std::uint64_t, Place> places_;
  SchedulePoint last_{};
  std::uint64_t began_ = 0;  // behind this index
  std::uint64_t points_ = 0, bytes_ = 0, digests_ = 0, equal_cut_ = 0;
  bool rest_compared_ = false, beyond_ = false;
  std::optional<ReplayDifference> difference_;
  std::optional<TurnDifference> turn_;
};

}  // namespace crane::proxy
