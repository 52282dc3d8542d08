// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of a replica's decisions: one event and the facts of that moment go in, a list of
// actions comes out.
//
// The machines do no I/O, read no clock, start no thread and make no callback.  crane-node
// (proxy/host) and the simulator (proxy/sim) run the same object code.  A shell looks like this:
//
//   for each thing that happened: step(event, facts), and then
//     while take_actions returns a list: carry out each action; its results are the next events
//   sleep until an event or due_ns(); then step Tick
//
// CONTRACT REPLICA-S1  Actions are carried out in the order given, all before the next step().
// CONTRACT REPLICA-S2  step() is total: every event is legal in every state; stale ones are
//                      ignored.
// CONTRACT REPLICA-S3  Exactly one answer follows each action that needs one: Proposed a
//                      ProposeCheckpoint, Looked a Look, Slid a Slide, Found a FindCheckpoints.
// CONTRACT REPLICA-S4  Facts are as of the event; `now_ns` never decreases.
// CONTRACT REPLICA-S5  The failure of an action is reported by the event that would report its
//                      success: Dumped for a Prepare or a Dump, Packed for a Pack.
//
// Threads: one.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "proxy/replica/messages.h"

namespace crane::replica {

// --- facts ---------------------------------------------------------------------------------------

// A replica's report of its server.
struct ServerReport {
  bool acceptor_only = false;  // it has no server, and votes (VOTES-1)
  Index waits_behind{};        // the last entry of its log when it began
  bool lacks = false;          // it lacks entries that left the others' logs
  bool recovers = false;       // the server runs what the replica missed
  bool held = false;           // it has reached the last known place of the leader's: not late
  std::int64_t lag_ms = 0;     // age of the oldest entry that the server has not taken
};

// A member of the group, as this replica sees it.
struct MemberView {
  ReplicaId id{};
  consensus::MemberRole role{};
  bool connected = false;         // its process is connected
  bool streaming = false;         // this replica leads, and sends it the log
  bool needs_checkpoint = false;  // this replica leads: the member lacks entries that left the log
  std::int64_t lag_ns = 0;        // this replica leads: how far the member's server is behind
  std::optional<ServerReport> report;  // nullopt: none since it connected

  bool votes() const noexcept { return role == consensus::MemberRole::kVoter; }
  bool only_votes() const noexcept { return report && report->acceptor_only; }
};

struct Facts {
  std::int64_t now_ns = 0;  // CLOCK_MONOTONIC

  // The role and the group.
  consensus::Role role = consensus::Role::kFollower;
  View view{};
  ReplicaId leader{};                   // of `view`; kReplicasMax or more: unknown
  bool leads = false;                   // according to consensus
  bool started = false;                 // START was proposed
  bool admitted = false;                // this replica's server has admitted START
  bool serves = false;                  // clients are accepted
  std::span<const MemberView> members;  // the members in force, this replica included

  // The log.
  Index committed{};              // the last committed entry that consensus knows on this replica
  bool needs_checkpoint = false;  // this replica lacks entries that left the others' logs
  bool low_on_room = false;       // the disk of this replica's store will be full soon
  Index taken{};                  // the last entry that arrived here
  Index for_server{};             // the last entry that is for the server
  std::uint64_t log_end = 0;      // where the committed log ends, bytes
  std::uint64_t inputs = 0;       // inputs of clients so far
  Index trusted{};                // up to this entry all replicas were equal

  // The server and this node.
  Index applied{};        // the last entry that the server admitted
  bool packs = false;     // a checkpoint is being packed, or files are being staged for one
  bool restarts = false;  // the server is being ended and started again, or soon will be
  bool stopping = false;  // the replica was ordered to stop
};

// --- events --------------------------------------------------------------------------------------

// The log is open.
struct Opened {
  bool acceptor_only = false;  // the log does not reach back to where a server can begin (VOTES-1)
  Index last{};                // the last entry of the log
  consensus::LogPlace begins;  // the server begins after this entry; index 0: with the first entry
  bool at_checkpoint = false;  // this place is a checkpoint
  bool restores = false;       // it should begin at a checkpoint: the replica existed before
};
struct Tick {};  // due_ns() has come, or any time earlier or later
// A CHECKPOINT entry was handed to the server; a replica without a server passed over it.
struct CheckpointCommitted {
  Index at{};
  ReplicaId taker{};
};
// The guard is ready for a dump; the log is held from now on, after `place`.
struct Prepared {
  Index place{};
};
struct Looked {
  bool admitted = false;  // the server has reached the place
  std::string blocker;    // why it is not quiescent; empty: it is
};
// The server received one more entry; 0: none is held.
struct Slid {
  Index at{};
};
struct Dumped {
  std::string why_not;   // empty: the dump exists
  std::string refusal;   // CRIU will never dump this server; empty: it may
  bool by_criu = false;  // CRIU did its part, whatever happened to the rest
};
struct Packed {
  Index at{};
  std::uint64_t end = 0;     // where that entry ends in the log, bytes
  bool by_criu = true;       // false: it contains the server's files (server restart)
  std::int64_t pack_ns = 0;  // for a checkpoint with files: how long packing took
  std::string why_not;       // empty: the checkpoint is published and verified
};
// A checkpoint of the server's files was not made.
struct NotAdmitted {
  Index at{};
  std::string why;
};
struct ServerRuns {
  std::int64_t took_ns = 0;  // how long restoring it took; 0: it was not restored
};
// The server was ordered to end, and another one replaces it.
struct ServerEnds {};
// The total run time of the server's processes.
struct ServerRan {
  std::int64_t run_ns = 0;
};
// The age of the oldest entry that the server has not run.  Sent while the replica catches up.
struct ServerBehind {
  std::int64_t behind_ns = 0;
};
struct PeerCommitted {
  ReplicaId from{};
  CommittedMessage message;
};
struct PeerCheckpoint {
  CheckpointNote note;
};
struct PeerRefusal {
  RefusalMessage note;
};
struct PeerWish {
  ReplicaId from{};
  CheckpointWish message;
};
struct PeerWishRefused {
  ReplicaId from{};
  WishRefusal message;
};
// An operator requests a checkpoint from that replica, or from any; Answer follows.  A follower can
// only pass on a request for itself.
struct CheckpointRequested {
  std::optional<ReplicaId> of;
};
// crane-run requests one for a replica that recovers without any, unless its operator disabled
// that.
struct CheckpointSuggested {};
// A replica on another host requested a checkpoint after that entry, and this host has none.
struct Lacked {
  ReplicaId peer{};
  Index behind{};
};
struct Proposed {
  Index at{};           // 0: it was not proposed
  std::string why_not;  // the reason if it was not proposed
};
// Why checkpoints are looked for.
enum class Purpose : std::uint8_t {
  kKeep,      // from which entry on the log stays whole
  kMissing,   // entries that left the other replicas' logs
  kOvertake,  // a checkpoint that a restart reaches sooner
  kFirst,     // a place where a server can begin
};
struct CheckpointView {
  consensus::LogPlace at;
  bool here = false;        // this replica took it
  bool distrusted = false;  // replicas that began at it differed or failed (START-3)
};
struct Found {
  Purpose purpose{};
  std::vector<CheckpointView> checkpoints;  // of this log, newest first, distrusted ones last
  bool fetching = false;                    // another one is being fetched from another host
  bool distrusted_behind = false;  // kFirst: a distrusted one that can be unpacked is after the
                                   // place where this replica was to begin
  std::vector<Index> unusable;     // these could not be unpacked when this replica began
};

using Event = std::variant<Opened, Tick, CheckpointCommitted, Prepared, Looked, Slid, Dumped,
                           Packed, NotAdmitted, ServerRuns, ServerEnds, ServerRan, ServerBehind,
                           PeerCommitted, PeerCheckpoint, PeerRefusal, PeerWish, PeerWishRefused,
                           CheckpointRequested, CheckpointSuggested, Lacked, Proposed, Found>;

// --- actions -------------------------------------------------------------------------------------

enum class Level : std::uint8_t { kInfo, kWarning };
struct LogMessage {
  Level level{};
  std::string text;
};
struct SendNote {  // may be lost
  ReplicaId to{};
  std::variant<CommittedMessage, CheckpointNote, RefusalMessage, CheckpointWish, WishRefusal>
      message;
};
// Proposed follows.
struct ProposeCheckpoint {
  ReplicaId taker{};
};
// Answers the operator who requested a checkpoint.
struct Answer {
  const char* refused = nullptr;  // the kind of refusal; nullptr: it was requested
  std::string text;
  ReplicaId taker{};
  Index at{};
};
// The node of this replica ends, and begins again at a checkpoint.
struct Restart {
  std::string why;
};
// Found follows.
struct FindCheckpoints {
  Purpose purpose{};
};
// Fetches a checkpoint after that entry from another host, if there is one.
struct FetchCheckpoint {
  Index behind{};
};
// The next process begins at a distrusted checkpoint if there is no other (START-3).
struct NoteLogGone {};
// The log stays whole from `from` on; nullopt: this is given up.
struct KeepLog {
  std::optional<consensus::LogPlace> from;
};
// When the leader is lost, replicas whose servers are further become candidates first.
struct ReportLag {
  std::int64_t ns = 0;
  Index ran{};
};
// The replica has run everything that it missed.
struct ReportCaughtUp {};
// To crane-run: why CRIU cannot dump this server; empty: it can.
struct ReportRefusal {
  std::string reason;
};
// A replica waits for the checkpoint that is being packed, or the log fills up meanwhile.
struct HurryPacking {};

// The steps of a checkpoint (recovery/checkpointer.h).
struct Prepare {  // Prepared or Dumped follows
  Index at{};
};
struct Look {  // has the server reached `at`, and is it quiescent?
  Index at{};
};
struct Slide {};  // the server receives one more of the held entries
struct Dump {};   // Dumped follows
struct ReleaseLog {};
struct Pack {};     // Packed follows
struct Discard {};  // ends the attempt and removes what it has written

using Action =
    std::variant<LogMessage, SendNote, ProposeCheckpoint, Answer, Restart, FindCheckpoints,
                 FetchCheckpoint, NoteLogGone, KeepLog, ReportLag, ReportCaughtUp, ReportRefusal,
                 HurryPacking, Prepare, Look, Slide, Dump, ReleaseLog, Pack, Discard>;
using ActionList = std::vector<Action>;

}  // namespace crane::replica
