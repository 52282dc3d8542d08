// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares a server's actions, when its history runs again, with the recording of them.  Compares
// each action when it happens, so the first difference is known before anything follows it.
//
// Threads: one object, one thread.  Pure: no clock, no I/O.
//
// INVARIANT LIVE-V6  All output of the server is either compared with the recording, or comes after
//               the end of a recording that ends early; then it is counted as not compared.

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
  // kSchedule: the first entry whose admission differs; kOutput: the last entry admitted before;
  // kDigest: the cut.
  std::uint64_t index = 0;
  std::string text;  // both sides
  // kSchedule, if both have a clock: the turns up to `after` have equal hashes; `own` and
  // `recorded` are the clocks at the entry.
  std::uint64_t after = 0, own = 0, recorded = 0;
};

class ReplayCheck {
 public:
  // Both arguments must outlive it.
  ReplayCheck(const Recording& outputs, const RecordedSchedule& schedule);

  // Begins after a checkpoint, with the connections that were open there.
  void begin_behind(std::uint64_t index, const std::vector<OutputStream>& open);

  void connected(ConnId conn, const ConnectBody& body);
  void output(const OutputHeader& header, std::span<const std::byte> bytes);
  // The server's digest at a cut, and the digest of that cut in the log: this replica's, or the
  // group's.
  void digest(const Digest& own, const Digest& recorded);
  // No thread has the turn, and no turn follows.  `whole`: the history ran to its end.
  void at_rest(const SchedulePoint& point, bool whole);

  const std::optional<ReplayDifference>& difference() const noexcept { return difference_; }
  // The first turn that differs, if both sides recorded it.
  const std::optional<TurnDifference>& turn() const noexcept { return turn_; }
  // Looks for that turn among these turns of the server: `first`, `first` + 1, ...
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
  std::uint64_t began_ = 0;  // the replay begins after this index
  std::uint64_t points_ = 0, bytes_ = 0, digests_ = 0, equal_cut_ = 0;
  bool rest_compared_ = false, beyond_ = false;
  std::optional<ReplayDifference> difference_;
  std::optional<TurnDifference> turn_;
};

}  // namespace crane::proxy
