// SPDX-License-Identifier: Apache-2.0
#pragma once
// The protocol core's only interface: one event in, a list of actions out.
//
// The core (replica.h) does no I/O, reads no clock, starts no thread and draws no random number:
// time and a random word come with every event.  The driver (consensus/driver) and the simulator
// (consensus/sim) run the same object code.  How a driver looks:
//
//   a Replica gets log_memory_bytes(ring_bytes), zeroed or surviving; its first event is Start
//   for each thing that happened: step or propose, and then
//     as long as take_actions gives a list: carry out each; what comes back are the next events
//     as long as deliver gives an entry: hand it to the application
//   at the end of an iteration: Flush is stepped, carried out, then doorbells are rung
//   sleep until an event or deadline_ns; then Tick is stepped
//
// CONTRACT CORE-S1  Actions are carried out in the order given, all before the next step() or
//              propose() (a completion that arrives meanwhile waits its turn).
// CONTRACT CORE-S2  What SetCell publishes survives with the log memory (or both are lost), and is
//              set before any later action is carried out: a promise is kept before it is told.
// CONTRACT CORE-S3  step() is total: every event is legal in every state; stale ones are ignored.
// CONTRACT CORE-S4  Exactly one Completion per WriteLog, ReadLog, ReadCell; WriteLogs to one peer
//              complete in order; after a failed one all later ones under that key fail (FABRIC-F4,
//              FABRIC-F5).
// CONTRACT CORE-S5  RevokeWrites is answered by Revoked when nothing written under the old key can
//              become visible any more and every write that completed is visible (FABRIC-F2,
//              FABRIC-F3), PermitWrites by Permitted with a key never used before (FABRIC-F6), or
//              ok = false.
// CONTRACT CORE-S6  Messages may be lost, never altered, and come in order per peer.
// CONTRACT CORE-S8  In disk mode: stores are carried out in the order given; each StorePromise and
//              StoreEntries is answered once, by PromiseStored or Stored when what it names would
//              survive a loss of power, or by StoreFailed, after which nothing more is stored.
// CONTRACT CORE-S9  Exactly one Fetched per FetchEntries, unless the store failed.
// CONTRACT CORE-S7  After construction nothing is allocated on the way of propose, completions,
//              commits and delivery.
//
// Threads: one.  Nothing here knows of memory registration, sockets or processes.

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

// Small values which only their owner writes and all read whole (FABRIC-F10).
using Cell = std::array<std::uint64_t, kCellWords>;

// Cell kStatusCell: read by followers (heartbeat) and by the leader (how far a ring may be
// written).
inline constexpr std::uint8_t kStatusCell = 0;
enum StatusWord : std::size_t {
  kHeartbeat,     // moves while the owner lives and leads (or is a candidate)
  kPeriodNs,      // the next beat comes within this
  kLeadingView,   // view in which the owner is leader or candidate; 0 when neither
  kCommitIndex,   // what the owner knows to be committed
  kConsumedPos,   // log bytes before this position are not needed by the owner any more
  kAppliedIndex,  // last entry handed to the application
};
// Cell kPromiseCell: what must survive a restart on surviving memory (DESIGN C5).
inline constexpr std::uint8_t kPromiseCell = 1;
enum PromiseWord : std::size_t {
  kPromisedView,
  kLowWaterPos,    // where delivery stands: the scan starts here after a restart
  kLowWaterIndex,  // last entry before kLowWaterPos
  kLowWaterView,   // its view
  kIncarnation,
  kFirstPos,  // the oldest byte of the log in the ring
};
// Cell kDurableCell (disk mode): what the owner told its leader last, for when that was lost.
inline constexpr std::uint8_t kDurableCell = 2;
enum DurableWord : std::size_t {
  kDurablePromise,  // the view it was told in
  kDurableView,     // of the last stored entry
  kDurableIndex,    // and everything before it
};

// Entry types that the core knows; all others are the application's (DESIGN section 5).
inline constexpr std::uint8_t kStart = 0xf0;       // a leader's first entry
inline constexpr std::uint8_t kConfig = 0xf1;      // the members from here on (membership.h)
inline constexpr std::uint8_t kTruncation = 0xf2;  // what stores may lose (truncation.cc)
inline constexpr std::uint8_t kOwnTypesMin = 0xf0;

// Time and chance, given with every event.  now_ns never goes back within one incarnation.
struct Now {
  std::uint64_t now_ns = 0;
  std::uint64_t random = 0;
};

// What the replicas say to each other on the background plane: a plain value, sent as its bytes.
enum class MessageType : std::uint8_t {
  kPreVote = 1,  // may I try to become leader?           view: the view I would ask for
  kPreVoteYes,   //                                        view: as asked
  kRequest,      // let me write your log in `view`
  kGrant,        // you may, with `key`; my log ends at `last` / `end_pos`
  kRefuse,       // neither; my promise is `promised`, my leader `leader` (answers both questions)
  kYield,        // to a candidate for `view`: a server that is further, at `ran`, goes first
  kTransfer,     // I step down from `view`: please ask for the next one, followers will not refuse
  kProgress,     // leader of `view`: your log equals mine up to `last`, `commit` is committed
  kDurable,      // to the leader of `view`: my store holds everything up to `last` (disk mode)
  kJoin,         // I am no member under this incarnation: let me be one, if I am invited (to all)
  kNotMember,    // you do not belong to the group, by the committed CONFIG `config`
  kBehind,   // leader of `view`: what you need has left my ring, from `first_pos` on it is there;
             // or, view 0, to a candidate: for that reason I do not vote for you
  kFetch,    // to anybody: what is committed behind `commit`, at `commit_pos`, from byte `skip` on?
  kFetched,  // `size` bytes of that can be read; none: I hold nothing there, or nothing is behind
             // it
  kReady,    // to the leader of `view`: I have fetched what I missed, write to me
  kCannot,   // to the leader of `view`: no replica holds what I miss, a checkpoint must help
  kHolds,    // to the leader of `view`: I hold a checkpoint at `held`; its answer: you hold `size`
};
struct Message {
  MessageType type{};
  std::uint8_t from = 0;       // ReplicaId
  std::uint8_t leader = 0xff;  // ReplicaId the sender follows
  std::uint8_t transfer = 0;   // kPreVote, kRequest: the leader itself asked for this
  std::uint32_t incarnation = 0;
  std::uint64_t log_id = 0;
  View view{};
  View promised{};
  Viewstamp last{};                // the sender's last entry
  std::uint64_t end_pos = 0;       // absolute position behind it
  std::uint64_t first_pos = 0;     // oldest byte still in its ring
  std::uint64_t consumed_pos = 0;  // bytes before it may be overwritten
  Viewstamp commit{};              // last entry it knows to be committed
  std::uint64_t commit_pos = 0;
  Key key{};
  std::uint64_t skip = 0;
  std::uint64_t size = 0;
  std::uint64_t sequence = 0;  // of kFetch, in its answer; kPreVote: how often I have yielded
  Viewstamp config{};  // the newest CONFIG in the sender's log; zero: the group's first members
  Index held{};        // disk mode: the sender's newest checkpoint; 0: it holds none
  std::uint64_t analysis = 0;  // 1: the sender is an analysis replica (CORE-M7)
  std::uint64_t lag_ns = 0;    // kPreVote: of my server; 0: it is near the log's end
  Index ran{};                 // kPreVote, kYield: as far as a server has run
};
inline constexpr std::size_t kMessageBytes = sizeof(Message);
static_assert(kMessageBytes <= 240, "fits a fabric request");

// --- events --------------------------------------------------------------------------------------

enum class StartKind : std::uint8_t {
  kNew,       // the group's first start: every member's log is empty and says so
  kSurvived,  // log memory and cells are those of the previous incarnation: a pause (C5)
  kLost,      // it existed, its memory is gone: new incarnation, zeroed memory, asks to join (C5)
};
// Where a server that was brought back from a checkpoint stands.
struct Checkpoint {
  Cursor at;        // it holds the effects of all up to here; index 0: of nothing
  View view{};      // in this view, or an earlier one, that was known to be committed
  ConfigAt config;  // committed, and at least as new as the one in force there
};
struct Start {
  StartKind kind = StartKind::kNew;
  Cell promise{};         // the surviving kPromiseCell when kSurvived
  View stored_promise{};  // disk mode: the promise that is durable already
  // Delivery begins behind it; valid during the step.  nullptr: where it stood, or at the log's
  // beginning.
  const Checkpoint* checkpoint = nullptr;
};
struct Tick {};        // deadline_ns() has come, or any time earlier or later
struct LogArrived {};  // a peer wrote into the log memory since the last one
struct Flush {};       // end of an iteration: tell followers what is committed
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
// The own server died or is stuck: hand leadership over and do not seek it until fit again.
struct Abdicate {};
struct ServerHealthy {};
// The own server is so far behind the log, 0: near its end, and has run entries up to `ran`.
struct ServerLagging {
  std::uint64_t ns = 0;
  Index ran{};
};
// The own server's state at entry `at` is kept in files of this replica's own, whole, and stays
// there until a newer one was told (disk mode).
struct Checkpointed {
  Index at{};
};
// Memory mode: the log behind `from` stays whole in the ring, as if it were not consumed, because a
// server may have to begin there.  Nothing: what is consumed may be overwritten, and stays
// given up when the log is kept again (CORE-C8).
struct Keep {
  std::optional<Cursor> from;
};
struct PromiseStored {
  View view{};
};
// Entries up to `last`, which ends at `end_pos`, are durable.  Less than what StoreEntries named:
// the bytes were found changed since.
struct Stored {
  std::uint64_t sequence = 0;
  Viewstamp last{};
  std::uint64_t end_pos = 0;
};
// What FetchEntries asked for: whole entries in the ring's format, or none (not held).
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

// Copy own log_memory[offset, offset + size) to the same offset of the peer's log memory.  The
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
// Drop the write connection to the peer: nothing posted before lands later unless it already
// completed.
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

// kLeader is told when START(view) is committed: from now on propose() is accepted.  When
// leadership ends, kFollower is told at once, and nothing proposed may be proposed again (C8).
struct RoleChange {
  Role role{};
  View view{};
  ReplicaId leader = kNoReplica;
};
// A CONFIG was committed: Replica::members() tells.
struct MembersChange {};
struct Fatal {
  const char* why = "";
};
// Make durable: the promise.
struct StorePromise {
  View view{};
};
// Make durable, as one transaction: the entries of own log_memory at positions [from_pos, to_pos),
// the first of which follows `before`, the last of which is `last`; and that `commit`, which ends
// at commit_pos, is committed.  The bytes are taken when this is carried out.  A stored entry of
// another stamp at the same index goes, with all above it, in that transaction (U4).
struct StoreEntries {
  std::uint64_t sequence = 0;
  std::uint64_t from_pos = 0;
  std::uint64_t to_pos = 0;
  Viewstamp before{};
  Viewstamp last{};
  Viewstamp commit{};
  std::uint64_t commit_pos = 0;
};

// Read from the own store, for a peer: entries from `first` on, at least one, then up to about
// bytes_max.
struct FetchEntries {
  std::uint64_t sequence = 0;
  Index first{};
  std::uint64_t bytes_max = 0;
};

// Entries up to `upto` are not needed in the own store any more.
struct DropStored {
  Index upto{};
};

using Action = std::variant<WriteLog, ReadLog, ReadCell, CloseLog, SetCell, SendMessage,
                            PermitWrites, RevokeWrites, Committed, RoleChange, MembersChange, Fatal,
                            StorePromise, StoreEntries, FetchEntries, DropStored>;
using ActionList = std::vector<Action>;

// --- what is proposed and delivered --------------------------------------------------------------

struct Proposal {
  std::uint8_t type = 0;       // < kOwnTypesMin
  std::uint32_t grant = 0;     // opaque here (DESIGN D3)
  std::uint64_t stamp_ns = 0;  // opaque here (DESIGN D6)
  std::span<const std::byte> payload;
};
// One step of a membership change (DESIGN C7).  Replacing a living member is three of them: add
// the new one, promote it, remove the old one.
struct MemberChange {
  enum class Kind : std::uint8_t {
    kAdd,          // as a learner; its incarnation is taken from what it says when it asks to join
    kPromote,      // a learner that caught up becomes a voter
    kRemove,       // also of the leader: it hands over once the CONFIG is committed, and leaves
    kAddAnalysis,  // as a learner that is never promoted (CORE-M7)
  };
  Kind kind{};
  ReplicaId id{};
};
struct Entry {
  Viewstamp at;
  std::uint8_t type = 0;
  std::uint32_t grant = 0;
  std::uint64_t stamp_ns = 0;          // 0 in entries of the core's own
  std::uint64_t pos = 0;               // where it stands in the log
  std::span<const std::byte> payload;  // valid until the next call of the replica but propose()
};

// --- configuration -------------------------------------------------------------------------------

// A rule removed, for the tests which prove that the checkers would notice
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
  kAckBeforeSync,      // C4: tell entries durable when they are given to the store
  kDurableAnyView,     // U4: durable indexes count whatever the view; the store's cursor stays
  kVoteWithShortLog,   // U8: take a damaged store for a short log
  kPromiseNotDurable,  // C1: grant and ask before the promise is durable
  kConfigBeforeStart,  // U3c: propose a CONFIG before START and the previous one are committed
  kSwapVoters,         // U3a: replace a living voter by one CONFIG
  kStaleConfig,        // U3b: judge grants by the CONFIG known when the campaign began
  kLearnerCounts,      // C7: what only a learner holds counts
  kLearnerVotes,       // C7: a learner's grant counts
  kServeUncommitted,   // catch-up: serve all that is stored, committed or not
  kKeepOwnTail,        // catch-up: keep own entries where others were committed
  kFetchAnyView,       // catch-up: take what a view above the promise committed
  kStartLate,   // checkpoint: what the server missed before the low-water mark is not handed out
  kStartEarly,  // checkpoint: what the server holds beyond the low-water mark is handed out again
  kReplayUnchecked,    // checkpoint: the ring is taken to hold what the server missed
  kCheckpointAnyView,  // checkpoint: the promise stays below the view it is known from
  kKeepIgnored,        // CORE-C7: what is consumed may be overwritten, kept or not
  kKeepForgotten,      // CORE-C7: a replica keeps nothing from its start until Keep
  kKeepTakenBack,      // CORE-C8: what was given up counts as kept again
  kKeepDelivered,      // CORE-C7: a place that was not delivered yet makes no room
  kCoverMinority,      // stores: a checkpoint that one voter less than a majority holds will do
  kCoverTheLost,       // stores: what was held before a replica was lost counts for who recovered
  kDropUncovered,      // stores: a replica's own checkpoint is enough for its own store
  kDropUncommitted,    // stores: TRUNCATION counts before it is committed
  kPromoteAnalysis,    // CORE-M7: an operator may give an analysis replica a vote
  kAnalysisReturns,    // CORE-M7: one that lost its memory recovers as a voter would
  kAddAsLearner,   // CORE-M7: no replica looks what the process is that asks for a learner's place
  kReuseKey,       // U6: the fabric gives a peer the key it had before
  kLateCopy,       // U7: a copy under way is not stopped by the fence
  kSilentCommit,   // U10: an idle leader does not tell what is committed
  kKnownLogId,     // U11: clients know the secret log id
  kSkipCrc,        // U11: entries are taken without checking their bytes
  kNoStickiness,   // L1: whoever does not see the leader may replace it
  kErrorStopsAll,  // L5: an error of one peer ends the leadership
  kConstantTimeout,  // C6: a candidate waits as long as the last time, however often in vain
  kDeposedByDisk,    // C6: slow disks end the leadership
  kLeadsAlone,       // C8: a leader that sees no majority's processes goes on leading
  kLateTick,         // C6: each event puts off the Tick of a replica that waits for nothing
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
  // The group's first members, equal on all replicas for the group's life; none: all slots vote.
  Members members{};
  std::uint64_t log_id = 0;      // secret, random, fixed for the group's life (C3)
  std::uint64_t ring_bytes = 0;  // a power of two; equal on all replicas
  std::uint32_t payload_bytes_max = 1U << 20;
  std::uint64_t write_bytes_max = 256U << 10;  // of one write when a follower is brought up
  // Under way to one follower, so that who is brought up does not keep the leader from the others.
  std::uint64_t in_flight_bytes_max = 1U << 20;
  Durability durability = Durability::kMemory;
  std::uint64_t store_bytes_max = 4U << 20;  // of one transaction, unless one entry is larger

  std::uint64_t period_active_ns = 2'000'000;  // heartbeats while traffic flows
  std::uint64_t period_idle_ns = 100'000'000;  // heartbeats when idle
  // Traffic flows: active_entries within active_for_ns, for so long.  A server's own timers (redis:
  // 10 a second) are no traffic.
  std::uint64_t active_for_ns = 500'000'000;
  std::uint32_t active_entries = 16;
  std::uint64_t slot_ns = 3'000'000;          // election: head start of a smaller id
  std::uint64_t lag_most_ns = 50'000'000;     // head start of others while the own server lags
  std::uint64_t ask_timeout_ns = 40'000'000;  // an unanswered pre-vote or request
  std::uint64_t let_in_ns = 0;  // a leader that is removed goes on for so long, then hands over
  std::uint64_t retry_ns = 20'000'000;  // leader: ask a lost follower again after this
  std::uint64_t progress_timeout_ns = 1'000'000'000;  // leader: work outstanding, no majority
  bool campaign_at_once = false;                      // replica 0 of a new group does not wait
  bool analysis = false;   // it never votes, and takes no place but an analysis replica's (CORE-M7)
  bool keeps_log = false;  // memory mode: the log stays whole from its beginning until Keep

  Mutant test_only_mutant = Mutant::kNone;
  MoveCounts* test_only_moves = nullptr;  // counts the moves of the state machines
};

}  // namespace crane::consensus::core
