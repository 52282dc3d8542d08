// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of what a replica decides: one event and the facts of that moment in, a list of
// actions out.
//
// The machines behind it do no I/O, read no clock, start no thread and call nothing back.
// crane-node (proxy/host) and the simulator (proxy/sim) run the same object code.  How a shell
// looks:
//
//   for each thing that happened: step(event, facts), and then
//     as long as take_actions gives a list: carry out each; what comes back are the next events
//   sleep until an event or due_ns(); then Tick is stepped
//
// CONTRACT REPLICA-S1  Actions are carried out in the order given, all before the next step().
// CONTRACT REPLICA-S2  step() is total: every event is legal in every state; stale ones are
// ignored. CONTRACT REPLICA-S3  Exactly one answer follows each action that asks: Proposed a
//                      ProposeCheckpoint, Looked a Look, Slid a Slide, Found a FindCheckpoints.
// CONTRACT REPLICA-S4  Facts are as of the event; `now_ns` never goes back.
// CONTRACT REPLICA-S5  What an action fails with comes back as the event that would have told its
//                      success: Dumped of a Prepare or a Dump, Packed of a Pack.
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

// What a replica says of its server.
struct ServerReport {
  bool acceptor_only = false;  // it has none, and votes (VOTES-1);
  Index waits_behind{};        // its log held so much when it began
  bool lacks = false;          // it lacks entries that left the others' logs
  bool recovers = false;       // the server runs what the replica missed
  bool held = false;           // it is where the leader's was last known to be: not late
  std::int64_t lag_ms = 0;     // age of the oldest entry that the server has not taken
};

// A member of the group, as this replica sees it.
struct MemberView {
  ReplicaId id{};
  consensus::MemberRole role{};
  bool connected = false;         // its process is there
  bool streaming = false;         // this replica leads, and writes to its log
  bool needs_checkpoint = false;  // this replica leads: the member lacks entries that left the log
  std::int64_t lag_ns = 0;        // this replica leads: how far the member's server is behind
  std::optional<ServerReport> report;  // nullopt: nothing since it is there

  bool votes() const noexcept { return role == consensus::MemberRole::kVoter; }
  bool only_votes() const noexcept { return report && report->acceptor_only; }
};

struct Facts {
  std::int64_t now_ns = 0;  // CLOCK_MONOTONIC

  // The role, and what the group is.
  consensus::Role role = consensus::Role::kFollower;
  View view{};
  ReplicaId leader{};                   // of `view`; no replica's number: none is known
  bool leads = false;                   // consensus says so,
  bool started = false;                 // START was proposed,
  bool admitted = false;                // the own server has admitted it,
  bool serves = false;                  // and clients are taken
  std::span<const MemberView> members;  // in force; this replica is one of them

  // The log.
  Index committed{};              // as far as consensus knows here
  bool needs_checkpoint = false;  // this replica lacks entries that left the others' logs
  bool low_on_room = false;       // the disk of the own store will not have room for long
  Index taken{};                  // the last entry that came here,
  Index for_server{};             // and the last of those that the server gets
  std::uint64_t log_end = 0;      // where the committed log ends, bytes
  std::uint64_t inputs = 0;       // of clients, so far
  Index trusted{};                // all replicas were equal up to here

  // The server and this node.
  Index applied{};        // the last entry that the server admitted
  bool packs = false;     // a checkpoint is being packed, or files are being staged for one
  bool restarts = false;  // the server is being ended and started again, or is to be
  bool stopping = false;  // the replica was told to stop
};

// --- events --------------------------------------------------------------------------------------

// The log is open.
struct Opened {
  bool acceptor_only = false;  // it does not reach back to where a server can begin (VOTES-1)
  Index last{};                // its last entry
  consensus::LogPlace begins;  // the server begins behind it; index 0: with the first entry
  bool at_checkpoint = false;  // .. at one,
  bool restores = false;       // or was to: the replica was here before
};
struct Tick {};  // due_ns() has come, or any time earlier or later
// A CHECKPOINT entry was handed to the server, or passed over where there is none.
struct CheckpointCommitted {
  Index at{};
  ReplicaId taker{};
};
// The guard is ready for a dump; the log is held from here on, behind `place`.
struct Prepared {
  Index place{};
};
struct Looked {
  bool admitted = false;  // the server has come to the place,
  std::string blocker;    // and is not quiescent because of this; empty: it is
};
// The server was given one more entry; 0: none is held.
struct Slid {
  Index at{};
};
struct Dumped {
  std::string why_not;   // empty: the dump is there
  std::string refusal;   // CRIU will never dump this server; empty: it may
  bool by_criu = false;  // CRIU did its part, whatever became of the rest
};
struct Packed {
  Index at{};
  std::uint64_t end = 0;     // where that entry ends in the log, bytes
  bool by_criu = true;       // else the server's files are in it (server restart)
  std::int64_t pack_ns = 0;  // of one with files: how long it took
  std::string why_not;       // empty: the checkpoint is published and verified
};
// A checkpoint of the server's files was not made.
struct NotAdmitted {
  Index at{};
  std::string why;
};
struct ServerRuns {
  std::int64_t took_ns = 0;  // bringing it back took so long; 0: it was not brought back
};
// The server is told to end, and another one takes its place.
struct ServerEnds {};
// How long the server's processes have run in all.
struct ServerRan {
  std::int64_t run_ns = 0;
};
// The age of the oldest entry that the server has not run; while the replica catches up.
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
// An operator wants a checkpoint, of that replica or of any; Answer follows.
struct CheckpointWanted {
  std::optional<ReplicaId> of;
};
// crane-run wants one for a replica that recovers without; unless its operator wants none.
struct CheckpointHelps {};
// A replica on another host came for a checkpoint behind that entry, and there is none here.
struct Lacked {
  ReplicaId who{};
  Index behind{};
};
struct Proposed {
  Index at{};           // 0: it was not,
  std::string why_not;  // because of this
};
// Why checkpoints are looked for.
enum class Purpose : std::uint8_t {
  kKeep,      // from where on the log stays whole
  kMissing,   // entries that left the others' logs
  kOvertake,  // one that is reached sooner by a restart
  kFirst,     // a place where a server can begin
};
struct CheckpointView {
  consensus::LogPlace at;
  bool here = false;        // it is this replica's own
  bool distrusted = false;  // replicas that began there differed (START-3)
};
struct Found {
  Purpose purpose{};
  std::vector<CheckpointView> checkpoints;  // of this log, newest first but the distrusted last
  bool fetching = false;                    // another one is on its way from another host
  bool distrusted_behind = false;  // kFirst: a distrusted one that can be unpacked is behind the
                                   // place where this replica was to begin
  std::vector<Index> unusable;     // could not be unpacked when this replica began
};

using Event = std::variant<Opened, Tick, CheckpointCommitted, Prepared, Looked, Slid, Dumped,
                           Packed, NotAdmitted, ServerRuns, ServerEnds, ServerRan, ServerBehind,
                           PeerCommitted, PeerCheckpoint, PeerRefusal, CheckpointWanted,
                           CheckpointHelps, Lacked, Proposed, Found>;

// --- actions -------------------------------------------------------------------------------------

enum class Level : std::uint8_t { kInfo, kWarning };
struct Say {
  Level level{};
  std::string text;
};
struct Tell {  // may be lost
  ReplicaId to{};
  std::variant<CommittedMessage, CheckpointNote, RefusalMessage> message;
};
// Proposed follows.
struct ProposeCheckpoint {
  ReplicaId taker{};
};
// To the operator who wanted a checkpoint.
struct Answer {
  const char* refused = nullptr;  // the kind of refusal; nullptr: it was asked for
  std::string text;
  ReplicaId taker{};
  Index at{};
};
// Of this replica: its node ends, and begins again at a checkpoint.
struct Restart {
  std::string why;
};
// Found follows.
struct FindCheckpoints {
  Purpose purpose{};
};
// From another host, if there are others: one behind that entry.
struct FetchCheckpoint {
  Index behind{};
};
// The next life begins at a distrusted checkpoint if there is no other (START-3).
struct NoteLogGone {};
// The log stays whole from there on; nullopt: it is given up.
struct KeepLog {
  std::optional<consensus::LogPlace> from;
};
// When a leader is lost, replicas whose servers are further go first.
struct ReportLag {
  std::int64_t ns = 0;
  Index ran{};
};
// The replica has run what it missed.
struct ReportCaughtUp {};
// To crane-run: why CRIU does not dump this server; empty: it does.
struct ReportRefusal {
  std::string reason;
};
// A replica waits for the checkpoint that is packed, or the log for its end.
struct HurryPacking {};

// The steps of a checkpoint (recovery/checkpointer.h).
struct Prepare {  // Prepared or Dumped follows
  Index at{};
};
struct Look {  // whether the server has come to `at` and is quiescent
  Index at{};
};
struct Slide {};  // the server gets one more entry of what is held
struct Dump {};   // Dumped follows
struct ReleaseLog {};
struct Pack {};     // Packed follows
struct Discard {};  // nothing of it goes on, what was written of it is removed

using Action =
    std::variant<Say, Tell, ProposeCheckpoint, Answer, Restart, FindCheckpoints, FetchCheckpoint,
                 NoteLogGone, KeepLog, ReportLag, ReportCaughtUp, ReportRefusal, HurryPacking,
                 Prepare, Look, Slide, Dump, ReleaseLog, Pack, Discard>;
using ActionList = std::vector<Action>;

}  // namespace crane::replica
