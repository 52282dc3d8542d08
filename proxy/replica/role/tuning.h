// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds of a leader: how much is under way, how late followers may be, when virtual time stops.

#include <cstdint>

namespace crane::replica {

// Proposed and not yet admitted by the own server: beyond either, clients are not read (C4).
inline constexpr std::uint64_t kPipelineEntries = 8192;
inline constexpr std::uint64_t kPipelineBytes = 8U << 20;
// Flow control (flow_control.h).  The largest limit that --lag takes.
inline constexpr std::int64_t kLagMostNs = 2'000'000'000;
// A follower that is so late says so, this often while it moves and this often while it stands, for
// so long; what it said counts for so long.
inline constexpr std::int64_t kLateNs = 20'000'000;
inline constexpr std::int64_t kTellNs = 10'000'000;
inline constexpr std::int64_t kRepeatNs = 40'000'000;
inline constexpr std::int64_t kStandsNs = 1'000'000'000;
inline constexpr std::int64_t kHeardNs = 100'000'000;
inline constexpr std::int64_t kTrailStepNs = 4'000'000;  // between the steps of a Trail
// One that recovers is helped from so long after it was first heard of, for so long; the leader's
// server may take so many entries beyond half of what it runs.
inline constexpr std::int64_t kHelpAfterNs = 300'000'000;
inline constexpr std::int64_t kHelpNs = 60'000'000'000;
inline constexpr std::uint64_t kHelpSlack = 64;
// The group is out of order when nothing that is under way was committed for so long, or when the
// leader's process slept so much longer than it meant to: virtual time stops (virtual_clock.h).
inline constexpr std::int64_t kOutageNs = 200'000'000;
// Behind an outage virtual time runs faster by this part, and is never further behind than this.
inline constexpr std::int64_t kSlewParts = 10;
inline constexpr std::int64_t kBehindMostNs = 60'000'000'000;
// Deadlines of the server that lie closer together than this share one TIME entry (D17).
inline constexpr std::int64_t kTimerGranularityNs = 1'000'000;

static_assert(kTellNs < kRepeatNs && 2 * kRepeatNs < kHeardNs,
              "who goes on saying so must stay heard");

}  // namespace crane::replica
