// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants of the protocol core and the relations between them.

#include <cstddef>
#include <cstdint>

namespace crane::consensus::core {

// Writes under way to one follower; later entries go out together as one larger write.
inline constexpr std::uint32_t kWindowMax = 256;
// Bytes of a follower's log read at once to find its first differing entry.
inline constexpr std::size_t kMatchBytes = 4096;

// Parts of a ring, so that a full ring can always take the START that unblocks it: inputs use at
// most three quarters of a ring after the consumed position, and are at most half a ring ahead of
// the commit index.
inline constexpr std::uint64_t kReserveDivisor = 4;
inline constexpr std::uint64_t kPipelineDivisor = 2;
// Delivery is published when it moved by this part of the ring.
inline constexpr std::uint64_t kPublishDivisor = 16;
// A follower that gets a long history is sent its confirmed position once per this part of the
// ring.
inline constexpr std::uint64_t kProgressDivisor = 256;
static_assert(kPublishDivisor > kReserveDivisor && kReserveDivisor > kPipelineDivisor);

// Disk mode: after so long without progress the leader reads the followers' durable cells.
inline constexpr std::uint64_t kDurableReadNs = 10'000'000;
// A learner whose log ends within this part of a ring of the leader's may get a vote.
inline constexpr std::uint64_t kCaughtUpDivisor = 16;

// Pull-score (Mu 5.1), in points.
inline constexpr int kScoreMax = 1500;
inline constexpr int kScoreLow = 200;
inline constexpr int kScoreHigh = 600;
inline constexpr int kHitPoints = 250;
// Misses in a row, without noise, from full score to suspicion.
inline constexpr int kMissesBase = 5;
inline constexpr int kNoiseMax = 40;
// A miss while the leader's process is observed to be stopped: two in a row are enough.
inline constexpr int kStoppedPoints = 700;
// Consecutive reads without an answer that count as the network's usual silence.  Each heartbeat
// seen forgets a sixteenth of one, so 200 ms are remembered for some 3 s of traffic.
inline constexpr int kSilenceMax = 250;
// The longest answer time fades by this part of its excess over each following one.
inline constexpr std::uint64_t kTookMemory = 64;
// Before the first answer: how long an answer may take on any network.
inline constexpr std::uint64_t kFirstAnswerNs = 200'000'000;
inline constexpr int kLatenessMax = 10;  // of the reader itself, in periods, as noise
// A leader that is observed to wait for a processor gets this long without a heartbeat.
inline constexpr std::uint64_t kStarvedMaxNs = 1'000'000'000;
static_assert(0 < kScoreLow && kScoreLow < kScoreHigh && kScoreHigh < kScoreMax);
static_assert(kScoreMax / kMissesBase > kScoreLow, "one miss alone never suspects");
static_assert(kScoreMax - kStoppedPoints > kScoreLow && kScoreMax - 2 * kStoppedPoints <= kScoreLow,
              "two looks at a stopped leader suspect it");

// Randomised back-off after a lost election doubles up to this power of two.
inline constexpr unsigned kBackoffPowerMax = 5;
// ... or that of so many races, however long a race takes.
inline constexpr std::uint64_t kBackoffRacesMax = 8;
// Upper limit for the measured time of a promise: the process may have been stopped meanwhile.
inline constexpr std::uint64_t kPromiseMaxNs = 2'000'000'000;
// A candidate's time-out for an answer doubles with each lost election, up to this power of two.
inline constexpr unsigned kPatiencePowerMax = 4;
// How many times a candidate whose server lags lets others go first.
inline constexpr std::uint64_t kYieldsMost = 2;
// The leader asks an unreachable follower at growing intervals, up to 2^this times the base period.
inline constexpr unsigned kRetryPowerMax = 4;

}  // namespace crane::consensus::core
