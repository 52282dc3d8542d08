// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds of the proxy and how they relate.

#include <cstddef>
#include <cstdint>

namespace crane::proxy {

// Clients taken from one listener per event, so that a flood of connects leaves room for requests.
inline constexpr int kAcceptsPerEvent = 64;
// How often a listener whose server has a full backlog is looked at, while clients wait for it.
inline constexpr std::int64_t kRoomLookNs = 5'000'000;
// Proposed and not yet admitted by the own server: beyond either, clients are not read (C4).
inline constexpr std::uint64_t kPipelineEntries = 8192;
inline constexpr std::uint64_t kPipelineBytes = 8U << 20;
// One iteration reads at most this much from all clients together; the rest is read in the next.
inline constexpr std::uint64_t kBatchBytes = 4U << 20;
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
// Output that clients have not taken, over all of them; beyond it the largest queue is reset.
inline constexpr std::uint64_t kQueuedBytesMax = 1ULL << 30;
// A follower that keeps so much more output of a connection asks what the leader has put into the
// socket.
inline constexpr std::size_t kTailLook = 16 * 1024;
// Before the lead goes to another host: what clients have sent, and what their kernels send at
// once, comes in and is committed.  Their answers wait for the next leader.
inline constexpr std::int64_t kLetInNs = 3'000'000;
// The group is out of order when nothing that is under way was committed for so long, or when the
// leader's process slept so much longer than it meant to: virtual time stops (virtual_clock.h).
inline constexpr std::int64_t kOutageNs = 200'000'000;
// Behind an outage virtual time runs faster by this part, and is never further behind than this.
inline constexpr std::int64_t kSlewParts = 10;
inline constexpr std::int64_t kBehindMostNs = 60'000'000'000;
// Deadlines of the server that lie closer together than this share one TIME entry (D17).
inline constexpr std::int64_t kTimerGranularityNs = 1'000'000;
// WINDOW is due when more than S / kWindowUsed is out and S / kWindowStep was drained (D15).
inline constexpr std::uint64_t kWindowUsed = 2;
inline constexpr std::uint64_t kWindowStep = 4;

static_assert(kTellNs < kRepeatNs && 2 * kRepeatNs < kHeardNs,
              "who goes on saying so must stay heard");
static_assert(kWindowStep >= kWindowUsed, "a blocked writer must be woken before all is drained");

}  // namespace crane::proxy
