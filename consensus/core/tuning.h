// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants of the protocol core and the relations between them.

#include <cstddef>
#include <cstdint>

namespace crane::consensus::core {

// Writes under way to one follower; what is appended beyond that goes out as one larger write.
inline constexpr std::uint32_t kWindowMax = 256;
// Bytes of a follower's log read at once when its first differing entry is looked for.
inline constexpr std::size_t kMatchBytes = 4096;

// Parts of a ring, so that a full ring can always take the START which unblocks it: inputs use at
// most three quarters behind what is consumed, and are at most half a ring ahead of what is
// committed.
inline constexpr std::uint64_t kReserveDivisor = 4;
inline constexpr std::uint64_t kPipelineDivisor = 2;
// Delivery is published when it moved by this part of the ring.
inline constexpr std::uint64_t kPublishDivisor = 16;
// A follower that gets a long history is told how far it is right by this part of the ring.
inline constexpr std::uint64_t kProgressDivisor = 256;
static_assert(kPublishDivisor > kReserveDivisor && kReserveDivisor > kPipelineDivisor);

// Disk mode: with no progress for so long the leader reads what the followers have told.
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
// A miss while the leader's process is seen to be stopped: two in a row are enough.
inline constexpr int kStoppedPoints = 700;
// Reads without an answer in a row that are taken for the network's usual silence; forgotten by a
// sixteenth of one with each heartbeat seen, so that 200 ms are remembered for some 3 s of traffic.
inline constexpr int kSilenceMax = 250;
// The longest answer fades by a part of what it exceeds the next ones by.
inline constexpr std::uint64_t kTookMemory = 64;
// Before the first answer: how long one may take on any network.
inline constexpr std::uint64_t kFirstAnswerNs = 200'000'000;
inline constexpr int kLatenessMax = 10;  // of the reader itself, in periods, as noise
// A leader that is seen to wait for a processor is given this long without a heartbeat.
inline constexpr std::uint64_t kStarvedMaxNs = 1'000'000'000;
static_assert(0 < kScoreLow && kScoreLow < kScoreHigh && kScoreHigh < kScoreMax);
static_assert(kScoreMax / kMissesBase > kScoreLow, "one miss alone never suspects");
static_assert(kScoreMax - kStoppedPoints > kScoreLow && kScoreMax - 2 * kStoppedPoints <= kScoreLow,
              "two looks at a stopped leader suspect it");

// Randomised back-off after a lost election doubles up to this power of two.
inline constexpr unsigned kBackoffPowerMax = 5;
// ... or in that of as many races, whatever a race takes.
inline constexpr std::uint64_t kBackoffRacesMax = 8;
// What a promise took is believed up to here: a process may have been stopped meanwhile.
inline constexpr std::uint64_t kPromiseMaxNs = 2'000'000'000;
// What a candidate waits for an answer doubles with each lost election, up to this power of two.
inline constexpr unsigned kPatiencePowerMax = 4;
// A candidate whose server lags lets others go first so often.
inline constexpr std::uint64_t kYieldsMost = 2;
// The leader asks an unreachable follower ever more rarely, up to 2^this times the base period.
inline constexpr unsigned kRetryPowerMax = 4;

}  // namespace crane::consensus::core
