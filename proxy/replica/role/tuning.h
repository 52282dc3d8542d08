// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds of a leader: how much is in flight, how late followers may be, when virtual time stops.

#include <cstdint>

namespace crane::replica {

// Proposed and not yet admitted by this replica's server.  Above either bound clients are not read
// (C4).
inline constexpr std::uint64_t kPipelineEntries = 8192;
inline constexpr std::uint64_t kPipelineBytes = 8U << 20;
// Flow control (flow_control.h).  The largest limit that --lag accepts.
inline constexpr std::int64_t kLagMostNs = 2'000'000'000;
// A follower that is kLateNs late reports it: every kReportNs while it moves, every kRepeatNs while
// it does not, for kStalledNs at most.  A report is valid for kReportValidNs.
inline constexpr std::int64_t kLateNs = 20'000'000;
inline constexpr std::int64_t kReportNs = 10'000'000;
inline constexpr std::int64_t kRepeatNs = 40'000'000;
inline constexpr std::int64_t kStalledNs = 1'000'000'000;
inline constexpr std::int64_t kReportValidNs = 100'000'000;
inline constexpr std::int64_t kTrailStepNs = 4'000'000;  // between the steps of a Trail
// A recovering follower is helped from kHelpAfterNs after its first report, for kHelpNs.  The
// leader's server may take kHelpSlack entries beyond half of what the follower runs.
inline constexpr std::int64_t kHelpAfterNs = 300'000'000;
inline constexpr std::int64_t kHelpNs = 60'000'000'000;
inline constexpr std::int64_t kHelpSpanNs = 1'000'000'000;
inline constexpr std::int64_t kHelpSlack = 64;
// An outage: nothing in flight was committed for this long, or the leader's process slept this much
// longer than it intended.  Virtual time stops (virtual_clock.h).
inline constexpr std::int64_t kOutageNs = 200'000'000;
// After an outage virtual time runs faster by this part, and is never further behind than this.
inline constexpr std::int64_t kSlewParts = 10;
inline constexpr std::int64_t kBehindMostNs = 60'000'000'000;
// Deadlines of the server that are closer together than this share one TIME entry (D17).
inline constexpr std::int64_t kTimerGranularityNs = 1'000'000;

static_assert(kReportNs < kRepeatNs && 2 * kRepeatNs < kReportValidNs,
              "a repeated report must not expire in between");

}  // namespace crane::replica
