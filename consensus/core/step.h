// SPDX-License-Identifier: Apache-2.0
#pragma once
// The protocol core's only interface: one event in, a list of actions out.
//
// The core (replica.h) does no I/O, reads no clock, starts no thread and draws no random number:
// time and a random word come with every event.  The driver (consensus/driver) and the simulator
// (consensus/sim) run the same object code.  A driver works like this:
//
//   give a Replica log_memory_bytes(ring_bytes), zeroed or surviving; its first event is Start
//   for each thing that happened: call step or propose, and then
//     while take_actions returns a list: carry out each action; their answers are the next events
//     while deliver returns an entry: hand it to the application
//   at the end of an iteration: step Flush, carry out its actions, then ring the doorbells
//   sleep until an event or deadline_ns; then step Tick
//
// CONTRACT CORE-S1  Actions are carried out in the order given, all before the next step() or
//              propose() (a completion that arrives meanwhile waits its turn).
// CONTRACT CORE-S2  A value published by SetCell survives with the log memory (or both are lost),
//              and is set before any later action is carried out: a promise is kept before it is
//              sent.
// CONTRACT CORE-S3  step() is total: every event is legal in every state; stale ones are ignored.
// CONTRACT CORE-S4  Exactly one Completion per WriteLog, ReadLog, ReadCell; WriteLogs to one peer
//              complete in order; after a failed one all later ones under that key fail (FABRIC-F4,
//              FABRIC-F5).
// CONTRACT CORE-S5  RevokeWrites is answered by Revoked when no write under the old key can become
//              visible any more and every write that completed is visible (FABRIC-F2, FABRIC-F3),
//              PermitWrites by Permitted with a key never used before (FABRIC-F6), or ok = false.
// CONTRACT CORE-S6  Messages may be lost, never altered, and arrive in order per peer.
// CONTRACT CORE-S8  In disk mode: stores are carried out in the order given; each StorePromise and
//              StoreEntries is answered once: by PromiseStored or Stored when its data would
//              survive a loss of power, or by StoreFailed, after which nothing more is stored.
// CONTRACT CORE-S9  Exactly one Fetched per FetchEntries, unless the store failed.
// CONTRACT CORE-S7  After construction, propose, completions, commits and delivery allocate
//              nothing.
//
// Threads: one.  The core knows no memory registration, sockets or processes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "consensus/core/access.h"
#include "consensus/core/log.h"
#include "consensus/core/membership.h"
#include "consensus/core/peer_process.h"
#include "consensus/core/roles.h"
#include "dmt/base/ids.h"

namespace crane::consensus::core {

inline constexpr ReplicaId kNoReplica{0xff};

// Small values that only their owner writes and all replicas read whole (FABRIC-F10).
using Cell = std::array<std::uint64_t, kCellWords>;

// Cell kStatusCell: read by followers (heartbeat) and by the leader (writable part of the ring).
inline constexpr std::uint8_t kStatusCell = 0;
enum StatusWord : std::size_t {
  kHeartbeat,     // moves while the owner is alive and leads (or is a candidate)
  kPeriodNs,      // the next beat comes within this
  kLeadingView,   // view in which the owner is leader or candidate; 0 when neither
  kCommitIndex,   // the commit index that the owner knows
  kConsumedPos,   // the owner no longer needs log bytes before this position
  kAppliedIndex,  // last entry handed to the application
};
// Cell kPromiseCell: what must survive a restart on surviving memory (DESIGN C5).
inline constexpr std::uint8_t kPromiseCell = 1;
enum PromiseWord : std::size_t {
  kPromisedView,
  kLowWaterPos,    // delivery position: the scan starts here after a restart
  kLowWaterIndex,  // last entry before kLowWaterPos
  kLowWaterView,   // its view
  kIncarnation,
  kFirstPos,  // the oldest byte of the log in the ring
};
// Cell kDurableCell (disk mode): what the owner last reported to its leader, in case it was lost.
inline constexpr std::uint8_t kDurableCell = 2;
enum DurableWord : std::size_t {
  kDurablePromise,  // the view of the report
  kDurableView,     // of the last stored entry
  kDurableIndex,    // durable, with everything before it
};

// Entry types that the core knows; the application defines all others
// (dmt/sequence/entry_types.def).
inline constexpr std::uint8_t kStart = 0xf0;       // a leader's first entry
inline constexpr std::uint8_t kConfig = 0xf1;      // the members from here on (membership.h)
inline constexpr std::uint8_t kTruncation = 0xf2;  // which entries stores may drop (truncation.cc)
inline constexpr std::uint8_t kOwnTypesMin = 0xf0;

// Time and randomness, passed with every event.  now_ns never goes back within one incarnation.
struct Now {
  std::uint64_t now_ns = 0;
  std::uint64_t random = 0;
};

// Messages between replicas on the background plane: a plain value, sent as its bytes.
enum class MessageType : std::uint8_t {
  kPreVote = 1,  // may I campaign?                  view: the view I would request
  kPreVoteYes,   //                                  view: as in the request
  kRequest,      // let me write your log in `view`
  kGrant,        // you may, with `key`; my log ends at `last` / `end_pos`
  kRefuse,       // no; my promise is `promised`, my leader `leader` (to kPreVote and kRequest)
  kYield,        // to a candidate for `view`: a server that has run more, to `ran`, goes first
  kTransfer,     // I step down from `view`: please request the next; followers will not refuse
  kProgress,     // leader of `view`: your log equals mine up to `last`, `commit` is committed
  kDurable,      // to the leader of `view`: my store holds everything up to `last` (disk mode)
  kJoin,         // I am no member under this incarnation: admit me if I am invited (to all)
  kNotMember,    // you do not belong to the group, by the committed CONFIG `config`
  kBehind,       // leader of `view`: my ring lacks what you need; it begins at `first_pos`;
                 // or, view 0, to a candidate: for that reason I do not vote for you
  kFetch,        // to any replica: please serve committed entries after `commit`, which ends at
                 // `commit_pos`, from byte `skip` on
  kFetched,      // you can read `size` bytes of that; 0: I have none, or there are none
  kReady,        // to the leader of `view`: I have fetched what I missed, write to me
  kCannot,       // to the leader of `view`: no replica holds what I miss; I need a checkpoint
  kHolds,        // to the leader of `view`: I hold a checkpoint at `held`; answer: noted `size`
};
struct Message {
  MessageType type{};
  std::uint8_t from = 0;       // ReplicaId
  std::uint8_t leader = 0xff;  // ReplicaId the sender follows
  std::uint8_t transfer = 0;   // kPreVote, kRequest: the leader itself requested this
  std::uint32_t incarnation = 0;
  std::uint64_t log_id = 0;
  View view{};
  View promised{};
  Viewstamp last{};                // the sender's last entry
  std::uint64_t end_pos = 0;       // absolute position after it
  std::uint64_t first_pos = 0;     // oldest byte still in its ring
  std::uint64_t consumed_pos = 0;  // bytes before it may be overwritten
  Viewstamp commit{};              // last entry it knows to be committed
  std::uint64_t commit_pos = 0;
  Key key{};
  std::uint64_t skip = 0;
  std::uint64_t size = 0;
  std::uint64_t sequence = 0;  // of kFetch, in its answer; kPreVote: how many times I have yielded
  Viewstamp config{};  // the newest CONFIG in the sender's log; zero: the group's first members
  Index held{};        // disk mode: the sender's newest checkpoint; 0: it holds none
  std::uint64_t analysis = 0;  // 1: the sender is an analysis replica (CORE-M7)
  std::uint64_t lag_ns = 0;    // kPreVote: of my server; 0: it is near the log's end
  Index ran{};                 // kPreVote, kYield: last entry that a server has run
};
inline constexpr std::size_t kMessageBytes = sizeof(Message);
static_assert(kMessageBytes <= 240, "fits a fabric request");

// --- events --------------------------------------------------------------------------------------

enum class StartKind : std::uint8_t {
  kNew,       // the group's first start: every member's log is known to be empty
  kSurvived,  // log memory and cells are those of the previous incarnation: a pause (C5)
  kLost,      // it existed, its memory is gone: new incarnation, zeroed memory, asks to join (C5)
};
// The state of a server that was restored from a checkpoint.
struct Checkpoint {
  Cursor at;        // the server holds the effects of all entries up to here; index 0: of none
  View view{};      // `at` was known to be committed in this view, or in an earlier one
  ConfigAt config;  // committed, and at least as new as the one in force there
};
struct Start {
  StartKind kind = StartKind::kNew;
  Cell promise{};         // the surviving kPromiseCell when kSurvived
  View stored_promise{};  // disk mode: the promise that is durable already
  // Delivery begins after it; valid during the step.  nullptr: delivery begins where it was, or at
  // the log's beginning.
  const Checkpoint* checkpoint = nullptr;
};
struct Tick {};        // deadline_ns() has passed; also legal earlier or later
struct LogArrived {};  // a peer wrote into the log memory since the last LogArrived
struct Flush {};       // end of an iteration: send followers the commit index
struct Completion {
  Token token{};
  bool ok = false;
  std::span<const std::byte> data;              // of reads; valid during the step
  PeerProcess process = PeerProcess::kUnknown;  // of heartbeats that did not move
};
struct MessageArrived {
  ReplicaId from{};
  std::span<const std::byte> bytes;
};
struct Revoked {
  ReplicaId peer{};
};
struct Permitted {
  ReplicaId peer{};
  Key key{};
  bool ok = false;
};
struct PeerDown {
  ReplicaId peer{};
};  // its process is gone (pidfd, reset connection)
struct PeerUp {
  ReplicaId peer{};
};
// This replica's server died or hangs: hand leadership over and do not seek it until fit again.
struct Abdicate {
  ReplicaId to = kNoReplica;  // the replica whose server is best; kNoReplica: not known
};
struct ServerHealthy {};
// This replica's server is `ns` behind the log (0: near its end), and has run entries up to `ran`.
struct ServerLagging {
  std::uint64_t ns = 0;
  Index ran{};
};
// The server's state at entry `at` is in files of this replica, whole, and stays there until a
// newer one was reported (disk mode).
struct Checkpointed {
  Index at{};
};
// Memory mode: the log after `from` stays whole in the ring, as if it were not consumed, because a
// server may have to begin there.  Nothing: consumed entries may be overwritten, and remain
// released when the log is kept again (CORE-C8).
struct Keep {
  std::optional<Cursor> from;
};
struct PromiseStored {
  View view{};
};
// Entries up to `last`, which ends at `end_pos`, are durable.  If that is less than StoreEntries
// named, the bytes had changed meanwhile.
struct Stored {
  std::uint64_t sequence = 0;
  Viewstamp last{};
  std::uint64_t end_pos = 0;
};
// The answer to FetchEntries: whole entries in the ring's format, or none (not held).
struct Fetched {
  std::uint64_t sequence = 0;
  std::span<const std::byte> bytes;  // valid during the step
};
struct StoreFailed {
  const char* why = "";
};

using Event = std::variant<Start, Tick, LogArrived, Flush, Completion, MessageArrived, Revoked,
                           Permitted, PeerDown, PeerUp, Abdicate, ServerHealthy, ServerLagging,
                           Checkpointed, Keep, PromiseStored, Stored, Fetched, StoreFailed>;

// --- actions -------------------------------------------------------------------------------------

// Copy log_memory[offset, offset + size) to the same offset of the peer's log memory.  The
// bytes stay unchanged until the completion or CloseLog.
struct WriteLog {
  ReplicaId peer{};
  Key key{};
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  Token token{};
};
struct ReadLog {
  ReplicaId peer{};
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  Token token{};
};
struct ReadCell {  // completion data: one Cell
  ReplicaId peer{};
  std::uint8_t cell = 0;
  Token token{};
};
// Drop the write connection to the peer: earlier writes that have not completed never land.
struct CloseLog {
  ReplicaId peer{};
};
struct SetCell {
  std::uint8_t cell = 0;
  Cell value{};
};
struct SendMessage {
  ReplicaId peer{};
  Message message;
};
struct PermitWrites {
  ReplicaId peer{};
};
struct RevokeWrites {
  ReplicaId peer{};
};
// Entries up to `upto` are committed: call deliver().
struct Committed {
  Index upto{};
};

// kLeader is sent when START(view) is committed: from then on propose() is accepted.  When
// leadership ends, kFollower is sent at once, and no earlier proposal may be proposed again (C8).
struct RoleChange {
  Role role{};
  View view{};
  ReplicaId leader = kNoReplica;
};
// A CONFIG was committed; see Replica::members().
struct MembersChange {};
struct Fatal {
  const char* why = "";
};
// Make the promise durable.
struct StorePromise {
  View view{};
};
// Make durable, as one transaction: the entries of log_memory at positions [from_pos, to_pos),
// the first of which follows `before` and the last of which is `last`; and that `commit`, which
// ends at commit_pos, is committed.  The bytes are read when this is carried out.  A stored entry
// with another stamp at the same index is deleted, with all above it, in that transaction (U4).
struct StoreEntries {
  std::uint64_t sequence = 0;
  std::uint64_t from_pos = 0;
  std::uint64_t to_pos = 0;
  Viewstamp before{};
  Viewstamp last{};
  Viewstamp commit{};
  std::uint64_t commit_pos = 0;
};

// Read from the store, for a peer: entries from `first` on, at least one, up to about
// bytes_max.
struct FetchEntries {
  std::uint64_t sequence = 0;
  Index first{};
  std::uint64_t bytes_max = 0;
};

// This replica's store no longer needs entries up to `upto`.
struct DropStored {
  Index upto{};
};

using Action = std::variant<WriteLog, ReadLog, ReadCell, CloseLog, SetCell, SendMessage,
                            PermitWrites, RevokeWrites, Committed, RoleChange, MembersChange, Fatal,
                            StorePromise, StoreEntries, FetchEntries, DropStored>;
using ActionList = std::vector<Action>;

// --- proposals and delivery --------------------------------------------------------------

struct Proposal {
  std::uint8_t type = 0;       // < kOwnTypesMin
  std::uint32_t grant = 0;     // not interpreted by the core (DESIGN D3)
  std::uint64_t stamp_ns = 0;  // not interpreted by the core (DESIGN D6)
  std::span<const std::byte> payload;
};
// One step of a membership change (DESIGN C7).  To replace a living member takes three: add the new
// one, promote it, remove the old one.
struct MemberChange {
  enum class Kind : std::uint8_t {
    kAdd,          // as a learner; its incarnation is the one in its kJoin
    kPromote,      // a learner that caught up becomes a voter
    kRemove,       // also of the leader: it hands over once the CONFIG is committed, then leaves
    kAddAnalysis,  // as a learner that is never promoted (CORE-M7)
  };
  Kind kind{};
  ReplicaId id{};
};
struct Entry {
  Viewstamp at;
  std::uint8_t type = 0;
  std::uint32_t grant = 0;
  std::uint64_t stamp_ns = 0;          // 0 in the core's own entries
  std::uint64_t pos = 0;               // its position in the log
  std::span<const std::byte> payload;  // valid until a call other than propose()
};

// --- configuration -------------------------------------------------------------------------------

// A removed rule, for the tests which prove that the checkers notice its absence
// (consensus/DESIGN.md).
enum class Mutant : std::uint8_t {
  kNone,
  kSkipFence,          // U6: grant without revoking the old writer
  kScanBeforeFence,    // C1: report the log as it was before the fence
  kMinorityCommit,     // C2: one replica less than a majority commits
  kCountOldViews,      // C2: commit entries of older views by counting
  kRestamp,            // U1: re-stamp adopted entries in place
  kKeepOwnLog,         // C2: do not adopt the best log of the quorum
  kCountGap,           // U5: stream from the tail to a reconnected follower
  kOverwriteUncopied,  // U5, C4: lap followers that have not copied out
  kAmnesiacVoter,      // U2: vote after losing the ring
  kForgetPromise,      // U2: forget the promise at a restart
  kCommitUnrepaired,   // U10: believe a commit index before repair
  kProposeAgain,       // U12: propose again what a deposed leader had in flight
  kAckBeforeSync,      // C4: report entries durable when they are given to the store
  kDurableAnyView,     // U4: durable indexes count whatever the view; the store's cursor stays
  kVoteWithShortLog,   // U8: take a damaged store for a short log
  kPromiseNotDurable,  // C1: grant and ask before the promise is durable
  kConfigBeforeStart,  // U3c: propose a CONFIG before START and the previous one are committed
  kSwapVoters,         // U3a: replace a living voter by one CONFIG
  kStaleConfig,        // U3b: judge grants by the CONFIG known when the campaign began
  kLearnerCounts,      // C7: what only a learner holds counts
  kLearnerVotes,       // C7: a learner's grant counts
  kServeUncommitted,   // catch-up: serve everything stored, committed or not
  kKeepOwnTail,        // catch-up: keep local entries where others were committed
  kFetchAnyView,       // catch-up: take what a view above the promise committed
  kStartLate,          // checkpoint: entries that the server missed are not handed out
  kStartEarly,         // checkpoint: entries that the server holds are handed out again
  kReplayUnchecked,    // checkpoint: the ring is assumed to hold what the server missed
  kCheckpointAnyView,  // checkpoint: the promise stays below the view in which it is known
  kKeepIgnored,        // CORE-C7: consumed entries may be overwritten, kept or not
  kKeepForgotten,      // CORE-C7: a replica keeps nothing from its start until Keep
  kKeepTakenBack,      // CORE-C8: released entries count as kept again
  kKeepDelivered,      // CORE-C7: a place that was not delivered yet makes no room
  kCoverMinority,      // stores: a checkpoint held by one voter less than a majority is enough
  kCoverTheLost,       // stores: a recovered replica counts with what it held before the loss
  kDropUncovered,      // stores: a replica's own checkpoint is enough for its own store
  kDropUncommitted,    // stores: TRUNCATION counts before it is committed
  kPromoteAnalysis,    // CORE-M7: an operator may give an analysis replica a vote
  kAnalysisReturns,    // CORE-M7: an analysis replica recovers from a loss as a voter
  kAddAsLearner,       // CORE-M7: no replica checks what kind of process asks for a learner's place
  kReuseKey,           // U6: the fabric gives a peer the key it had before
  kLateCopy,           // U7: a copy under way is not stopped by the fence
  kSilentCommit,       // U10: an idle leader does not send its commit index
  kKnownLogId,         // U11: clients know the secret log id
  kSkipCrc,            // U11: entries are taken without checking their bytes
  kNoStickiness,       // L1: a replica that does not see the leader may replace it
  kErrorStopsAll,      // L5: an error of one peer ends the leadership
  kConstantTimeout,    // C6: a candidate's time-out does not grow with lost races
  kDeposedByDisk,      // C6: slow disks end the leadership
  kLeadsAlone,         // C8: a leader that sees no majority's processes continues to lead
  kLateTick,           // C6: each event delays the Tick of a replica that waits for nothing
};
inline constexpr int kMutants = static_cast<int>(Mutant::kLateTick) + 1;

// When an entry is committed.
enum class Durability : std::uint8_t {
  kMemory,  // a majority's rings hold it (Mu 4.1)
  kDisk,    // a majority's stores hold it (APUS 5.1)
};

struct MoveCounts;  // transitions.h

struct Config {
  ReplicaId self{};
  std::uint8_t replicas = 3;                      // slots: ids 0 .. replicas-1 can ever be members
  std::uint32_t incarnation = kFirstIncarnation;  // of self
  // The group's first members, equal on all replicas for the group's life; empty: all slots vote.
  Members members{};
  std::uint64_t log_id = 0;      // secret, random, fixed for the group's life (C3)
  std::uint64_t ring_bytes = 0;  // a power of two; equal on all replicas
  std::uint32_t payload_bytes_max = 1U << 20;
  std::uint64_t write_bytes_max = 256U << 10;  // of one write when a follower catches up
  // Limit of bytes under way to one follower, so that a catch-up does not block the others.
  std::uint64_t in_flight_bytes_max = 1U << 20;
  Durability durability = Durability::kMemory;
  std::uint64_t store_bytes_max = 4U << 20;  // of one transaction, unless one entry is larger

  std::uint64_t period_active_ns = 2'000'000;  // heartbeats while traffic flows
  std::uint64_t period_idle_ns = 100'000'000;  // heartbeats when idle
  // Traffic flows: active_entries within active_for_ns; it counts for that long.  A server's own
  // timers (redis: 10 a second) are no traffic.
  std::uint64_t active_for_ns = 500'000'000;
  std::uint32_t active_entries = 16;
  std::uint64_t slot_ns = 3'000'000;          // election: head start of a smaller id
  std::uint64_t lag_most_ns = 50'000'000;     // head start of others while this server lags
  std::uint64_t ask_timeout_ns = 40'000'000;  // an unanswered pre-vote or request
  std::uint64_t removed_leader_ns =
      0;  // how long a removed leader keeps leading before it hands over
  std::uint64_t retry_ns = 20'000'000;  // leader: time before it asks a lost follower again
  std::uint64_t progress_timeout_ns = 1'000'000'000;  // leader: work outstanding, no majority
  bool campaign_at_once = false;                      // replica 0 of a new group does not wait
  bool analysis = false;   // never votes, and takes only an analysis replica's place (CORE-M7)
  bool keeps_log = false;  // memory mode: the log stays whole from its beginning until Keep

  Mutant test_only_mutant = Mutant::kNone;
  MoveCounts* test_only_moves = nullptr;  // counts the moves of the state machines
};

}  // namespace crane::consensus::core
