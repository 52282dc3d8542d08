// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds and defaults of the scheduler and the virtual world, with their relations.

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
inline constexpr std::uint32_t kInodesHeldMax = kInodesMax / 4;  // of them, never forgotten
inline constexpr std::uint32_t kInodeBuckets = 65536;
inline constexpr std::uint32_t kPathsBytes = 8u << 20;  // of where those files were found
inline constexpr std::uint32_t kWaitBuckets = 1024;
inline constexpr std::uint32_t kConnectionBuckets = 32768;
inline constexpr std::uint32_t kTimersMax = kSlotsMax + 4096;  // one per slot, the rest timerfds..
inline constexpr std::uint32_t kQueuedSignalsMax = 4096;       // pending signals with particulars
inline constexpr std::uint32_t kSemaphoreUndosMax = 1024;      // SEM_UNDO, of all processes
inline constexpr std::uint32_t kPosixTimersMax = 1024;         // timer_create, of all processes
inline constexpr std::uint32_t kMessageNoticesMax = 256;       // mq_notify, of all processes
inline constexpr std::uint32_t kFileWatchesMax = 16385;        // inotify's, one is unused
inline constexpr std::uint32_t kFileWatchBuckets = 4096;
inline constexpr std::uint32_t kFileEventsMax = 12;    // bits of IN_ALL_EVENTS
inline constexpr std::uint32_t kNamesMax = 256;        // questions for names at once
inline constexpr std::uint32_t kTerminalsMax = 257;    // pseudo-terminals, one is unused
inline constexpr int kEpollNestMax = 5;                // as Linux: epolls that watch epolls
inline constexpr std::uint32_t kHashHistory = 4096;    // remembered prefixes of the hash
inline constexpr std::uint32_t kUnhookedMax = 32;      // different unhooked calls that are named
inline constexpr std::uint32_t kTurnHistory = 4096;    // remembered turns
inline constexpr std::uint32_t kTurnsPerRecord = 512;  // handed to the node at once
inline constexpr std::uint32_t kOperationNamesBytes = 16384;
inline constexpr std::uint32_t kSoftBarrierPointsMax = 4;  // functions that are soft barrier points
inline constexpr std::uint32_t kSocketDirectoriesBytes = 4096;
inline constexpr std::uint32_t kFunctionNameBytes = 64;  // of the name of one, its end included

inline constexpr std::uint64_t kSequenceBytes = 16ull << 20;
inline constexpr std::uint64_t kOutputBytes = 16ull << 20;

// What one connection may hold unread inside a replica; the proxy never proposes more (rule 1).
inline constexpr std::uint32_t kReceiveWindow = 256 * 1024;
// The same before the server has read anything: what a full backlog of silent or hostile clients
// can pin.  The server's first read opens the whole window.
inline constexpr std::uint32_t kFirstWindow = 32 * 1024;
// The virtual send buffer S of DESIGN D15 unless the profile says otherwise.
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
// A quantum is longer by up to this part of it (rule 23).
inline constexpr std::uint32_t kQuantumPlay = 32;

// Output waits for at most this many hand-offs of the turn before the node is told.
inline constexpr std::uint32_t kHandOffsPerDoorbell = 16;

// The stall rule (stall.h).  A thread is stalled when it was seen only in a loop of so many
// bytes for so much of its own processor time; ..
inline constexpr std::uint64_t kSpinBytes = 1024;
inline constexpr std::int64_t kSpinFirstNs = 20'000'000;
inline constexpr std::uint32_t kSpinSamples = 8;
// .. or so often in a row within so many bytes of where one was stalled before, having slept in the
// kernel since the last probe or run for so long; that with the very registers of the last one it
// takes so many for one; ..
inline constexpr std::uint64_t kSiteMargin = 64;
inline constexpr std::uint32_t kSiteLooks = 2;
inline constexpr std::int64_t kLookNs = 25'000;
inline constexpr std::uint32_t kAlikeLooks = 6;
// .. or so long in one place asleep in the kernel, whenever a probe let it go on.
inline constexpr std::int64_t kAsleepNs = 1'000'000'000;
inline constexpr std::uint32_t kStallSitesMax = 32;
// A computation of this length leaves the schedule, where that is agreed.
inline constexpr std::int64_t kComputationNs = 1'000'000;

// Time slices (slices.h): how long one is, and what is an entry more or less worth.
inline constexpr std::uint32_t kTickPointsMax = 64;
inline constexpr std::uint32_t kEarlyPointsMax = 16;
inline constexpr std::uint32_t kSliceDefaultUs = 5000;

// Every so many clock reads without a turn one is a turn (D17).
inline constexpr std::uint32_t kClockReadsPerTurn = 64;
// The schedule hash is remembered once per this many turns (D14).
inline constexpr std::uint64_t kHashPeriod = 1024;

static_assert(kReceiveWindow >= 2 * 64 * 1024, "two DATA entries of the largest size must fit");
static_assert(kFirstWindow <= kReceiveWindow);
static_assert(std::uint64_t{kBacklogMax} * kFirstWindow <= std::uint64_t{kBlocksMax} * kBlockBytes,
              "one full backlog fits into the inbound blocks");
static_assert(kBubbleGrantMin <= kBubbleGrantMax);
static_assert(kTurnHistory % kTurnsPerRecord == 0, "turns of one record lie side by side");
static_assert(kSlotsMax < 0xfff0 && kTimersMax < 0xfff0, "slots and timers are 16-bit links");

}  // namespace crane::dmt
