// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds and defaults of the scheduler and the virtual world, and their relations.

#include <cstdint>

namespace crane::dmt {

inline constexpr std::uint32_t kSlotsMax = 4096;      // threads of all processes, slot 0 = node
inline constexpr std::uint32_t kProcessesMax = 256;   // processes alive at once
inline constexpr std::uint32_t kFdsMax = 16384;       // descriptors of one process
inline constexpr std::uint32_t kFilesMax = 65536;     // open file descriptions of all processes
inline constexpr std::uint32_t kWatchesMax = 131072;  // poll and epoll registrations
inline constexpr std::uint32_t kBlocksMax = 32768;    // inbound blocks of kBlockBytes
inline constexpr std::uint32_t kBlockBytes = 4096;
inline constexpr std::uint32_t kInodesMax = 131072;              // files whose number is remembered
inline constexpr std::uint32_t kInodesHeldMax = kInodesMax / 4;  // the part of them that is never
                                                                 // forgotten
inline constexpr std::uint32_t kInodeBuckets = 65536;
inline constexpr std::uint32_t kPathsBytes = 8u << 20;  // paths at which those files were found
inline constexpr std::uint32_t kWaitBuckets = 1024;
inline constexpr std::uint32_t kConnectionBuckets = 32768;
inline constexpr std::uint32_t kTimersMax = kSlotsMax + 4096;  // one per slot; the rest: timerfds
                                                               // etc.
inline constexpr std::uint32_t kQueuedSignalsMax = 4096;       // pending signals with details
inline constexpr std::uint32_t kSemaphoreUndosMax = 1024;      // SEM_UNDO, of all processes
inline constexpr std::uint32_t kPosixTimersMax = 1024;         // timer_create, of all processes
inline constexpr std::uint32_t kMessageNoticesMax = 256;       // mq_notify, of all processes
inline constexpr std::uint32_t kFileWatchesMax = 16385;        // of inotify; one is unused
inline constexpr std::uint32_t kFileWatchBuckets = 4096;
inline constexpr std::uint32_t kFileEventsMax = 12;    // bits of IN_ALL_EVENTS
inline constexpr std::uint32_t kNamesMax = 256;        // concurrent name queries
inline constexpr std::uint32_t kTerminalsMax = 257;    // pseudo-terminals; one is unused
inline constexpr int kEpollNestMax = 5;                // as Linux: nesting of epolls
inline constexpr std::uint32_t kHashHistory = 4096;    // stored prefixes of the hash
inline constexpr std::uint32_t kUnhookedMax = 32;      // distinct unhooked calls by name
inline constexpr std::uint32_t kTurnHistory = 4096;    // stored turns
inline constexpr std::uint32_t kTurnsPerRecord = 512;  // sent to the node at once
inline constexpr std::uint32_t kOperationNamesBytes = 16384;
inline constexpr std::uint32_t kSoftBarrierPointsMax = 4;  // functions with a soft barrier
inline constexpr std::uint32_t kSocketDirectoriesBytes = 4096;
inline constexpr std::uint32_t kFunctionNameBytes = 64;  // with the terminating 0

inline constexpr std::uint64_t kSequenceBytes = 16ull << 20;
inline constexpr std::uint64_t kOutputBytes = 16ull << 20;

// How much unread input one connection may hold in a replica; the proxy never proposes more (rule
// 1).
inline constexpr std::uint32_t kReceiveWindow = 256 * 1024;
// The limit of unread input before the server's first read, which opens the whole window.  It
// bounds what a full backlog of silent or hostile clients can pin.
inline constexpr std::uint32_t kFirstWindow = 32 * 1024;
// The virtual send buffer S of DESIGN D15, unless the profile sets another.
inline constexpr std::uint64_t kSendBufferDefault = 1024 * 1024;
inline constexpr std::uint32_t kBacklogMax = 4096;

// Turns per grant (D3).
inline constexpr std::uint32_t kInputGrantDefault = 1024;
inline constexpr std::uint32_t kBubbleGrantMin = 1024;
inline constexpr std::uint32_t kBubbleGrantMax = 64 * 1024;
inline constexpr std::uint32_t kStartGrant = 4096;
inline constexpr std::uint32_t kClassicBubbleGrant = 1000;  // CRANE 4.2: N_clock
inline constexpr std::uint64_t kClassicWaitNs = 100'000;    // CRANE 4.2: W_timeout

inline constexpr std::uint32_t kQuantumSerial = 1000;
inline constexpr std::uint32_t kQuantumParallel = 16;
// A quantum may be longer by up to 1/kQuantumJitter (rule 23).
inline constexpr std::uint32_t kQuantumJitter = 32;

// Output waits for at most this many hand-offs of the turn before the node is notified.
inline constexpr std::uint32_t kHandOffsPerDoorbell = 16;

// The stall rule (stall.h).  A thread is stalled in one of three cases.
// Case 1: all samples are in a loop of at most kSpinBytes, for kSpinFirstNs of its processor time.
inline constexpr std::uint64_t kSpinBytes = 1024;
inline constexpr std::int64_t kSpinFirstNs = 20'000'000;
inline constexpr std::uint32_t kSpinSamples = 8;
// Case 2: kSiteLooks looks in a row within kSiteMargin bytes of a place where a thread was stalled
// before.  A look needs that the thread slept in the kernel or ran for kLookNs since the last
// probe.  With unchanged registers, kAlikeLooks probes count as one look.
inline constexpr std::uint64_t kSiteMargin = 64;
inline constexpr std::uint32_t kSiteLooks = 2;
inline constexpr std::int64_t kLookNs = 25'000;
inline constexpr std::uint32_t kAlikeLooks = 6;
// Case 3: asleep in the kernel at one place for this long, each time a probe released it.
inline constexpr std::int64_t kAsleepNs = 1'000'000'000;
inline constexpr std::uint32_t kStallSitesMax = 32;
// A computation of this length leaves the schedule, if that is agreed.
inline constexpr std::int64_t kComputationNs = 1'000'000;

// Time slices (slices.h): bounds of points, and the default length.
inline constexpr std::uint32_t kTickPointsMax = 64;
inline constexpr std::uint32_t kEarlyPointsMax = 16;
inline constexpr std::uint32_t kSliceDefaultUs = 5000;

// One in this many clock reads without a turn is a turn (D17).
inline constexpr std::uint32_t kClockReadsPerTurn = 64;
// The schedule hash is stored once per this many turns (D14).
inline constexpr std::uint64_t kHashPeriod = 1024;

static_assert(kReceiveWindow >= 2 * 64 * 1024, "two DATA entries of the largest size must fit");
static_assert(kFirstWindow <= kReceiveWindow);
static_assert(std::uint64_t{kBacklogMax} * kFirstWindow <= std::uint64_t{kBlocksMax} * kBlockBytes,
              "one full backlog fits into the inbound blocks");
static_assert(kBubbleGrantMin <= kBubbleGrantMax);
static_assert(kTurnHistory % kTurnsPerRecord == 0, "turns of one record lie side by side");
static_assert(kSlotsMax < 0xfff0 && kTimersMax < 0xfff0, "slots and timers are 16-bit links");

}  // namespace crane::dmt
