// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's decisions when its server is ended and another one takes over its files, at one
// place of the log, on all replicas.  The reason is a checkpoint without processes if CRIU refuses
// the server (restarter.h), another command line or newer files of the machine (upgrade.h), or
// another build of Crane, which continues from that checkpoint while this node ends (a hand-over).
//
//   Asked, or the schedule -> Propose kEnd       Committed kEnd   -> KeepFiles
//   EndedAtTurn, Tick      -> Propose kBegin     Committed kBegin -> NotePlace; the log is held
//   Tick -> LookWhetherOver      Looked -> NoteServer, EndServer      Gone, Tick -> BeginServer
//   Begun -> ReleaseLog          Tick -> Publish                      Packed -> Published
//
// The contract with the shell (proxy/host/recovery/server_restart.h) is that of
// consensus/core/step.h: actions are carried out in order and completely before those of a later
// step, every event is legal in every state, and stale ones are ignored.  Proposed answers Propose
// before the next Tick.  Looked answers LookWhetherOver, Begun answers BeginServer, Packed answers
// Publish; Gone or EndRefused answers EndServer.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT RESTART-1  Each server's end is requested once per view, by a leader whose own server
//                      has ended, or has not for kEndNs.
// INVARIANT RESTART-2  The state for the new server is noted when the old one can do nothing any
//                      more, and published only after the new one runs.
// INVARIANT HANDOVER-1  After the entry at which a server ends for another build, this build passes
//                       nothing to any server, and lets no client in.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/replica/deadline.h"
#include "proxy/replica/recovery/restarter.h"
#include "proxy/replica/recovery/upgrade.h"

namespace crane::replica {

namespace change {

// The purpose of a proposed RESTART entry.
enum class Purpose : std::uint8_t {
  kRestart,     // a checkpoint, requested by an operator
  kScheduled,   // a checkpoint, by the schedule
  kReplace,     // another command line or build, requested by an operator
  kEndOfTrial,  // the server on trial did not listen in time
  kKeep,        // the server on trial stays
  kBegin,
};
// The place of a RESTART entry.
struct Place {
  consensus::LogPlace at;
  std::uint64_t stamp_ns = 0;
  std::vector<std::byte> facts;  // of consensus (Consensus::group_facts)
};
// The successor of the ended server: the same one under a build of Crane, or another server.
struct Next {
  std::string build;
  Upgrade::Server server, before;  // `before`: the one that ends
  bool same_program = true;        // this host's program is the leader's
};

// --- events

// An operator's request to the leader.
struct OperatorRequest {
  enum class For : std::uint8_t { kRestart, kUpgrade, kHandOver };
  For kind{};
  std::string bad = {};   // what is wrong with the request; "": nothing
  std::string next = {};  // the entry's text
  std::uint32_t patience_s = 0;
};
// A RESTART entry, before the server receives it.
struct Committed {
  RestartBody body{};
  Place place;
  std::optional<Next> next;
};
struct Admitted {
  Index at{};
};
// The server's main process ended at a turn.
struct EndedAtTurn {};
// The server ended in the kernel.
struct EndedInKernel {
  std::string not_kept;  // why its files are not kept; "": they are
};
// The server could not be started, or took no turn.
struct FailedToStart {
  std::string why;
};
// Output for which holds_back() is true.
struct PutOut {
  OutputHeader header{};
  ListenPlace place{};  // what follows the header
};
struct Proposed {
  Purpose purpose{};
  Index index{};
  std::string why_not;  // "": it was proposed
};
struct Looked {
  bool over = false;
};
struct EndRefused {
  std::string why;
};
struct Begun {
  std::string why_not;
};
struct Packed {
  Index at{};
  std::string why_not;  // "": it was published
  bool begun = true;    // false: packing did not start
};
// An iteration of the node's loop, and its observations.
struct Tick {
  View view{};
  bool serves = false;       // it leads and accepts clients
  bool may_lead = false;     // its server admitted START, and nothing stops it
  bool done = false;         // the replica has reached its end
  bool publishes = false;    // this replica may take a checkpoint now
  bool member = true;        // it is a voter that has caught up, so its checkpoint is useful
  bool refused = false;      // CRIU cannot dump this server
  bool runs = false;         // the server was started
  Index missed{};            // requests in entries up to this one were for the previous process
  Index applied{};           // the last entry that the server has admitted
  std::uint64_t inputs = 0;  // inputs of clients so far
};

using Event = std::variant<Tick, OperatorRequest, Committed, Admitted, EndedAtTurn, EndedInKernel,
                           FailedToStart, PutOut, Proposed, Looked, EndRefused, Begun, Packed>;

// --- actions

// Answers the operator's request.
struct Answer {
  const char* refusal = nullptr;  // nullptr: the server ends at entry `index`
  Index index{};
  std::string text;
};
struct Propose {
  Purpose purpose{};
  RestartBody body{};
  std::string next;       // follows the body
  bool as_input = false;  // with an input's grant
};
// When this server is gone, its files are kept, as those that end at this entry.
struct KeepFiles {
  Index at{};
};
// When this server is gone, its files are kept, as those that the group leaves.
struct LeaveFiles {};
// The checkpoint will be of this entry.
struct NotePlace {
  Place place;
};
// Done with the node's turn, which the node keeps if no part of the server runs.
struct LookWhetherOver {};
// Notes the state for the next server.  `dead` is true if this server took no turn.  Its clients'
// connections end.
struct NoteServer {
  bool dead = false;
};
// Ends the server in the kernel.
struct EndServer {};
// Begins a server in place of the one that is gone.
struct BeginServer {
  std::optional<Upgrade::Server> server;  // nullopt: the same one
  // Begins on the files that the old server began with, not on those that it left.
  bool on_files_before = false;
  bool leaves_files = false;  // LeaveFiles, for the new server
};
// No server begins: the checkpoint is for another build.
struct HandOver {};
struct LetIn {
  change::PutOut output{};
  bool last = false;
};
struct ReleaseLog {};
struct Publish {
  Index at{};
};
// Ends packing, and removes the files that were to be published.
struct AbandonPacking {};
struct Published {
  Index at{};
  std::int64_t took_ns = 0;
};
struct NotPublished {
  Index at{};
  std::string why;
};
// The replica cannot continue.
struct Fail {
  enum class Cause : std::uint8_t { kServerNotStarted, kDisagrees, kNoSegment };
  Cause cause{};
  std::string why;
};
// The replica ends, and another build continues.
struct EndHandedOver {
  std::string text;
};
struct LogMessage {
  bool warns = false;
  std::string text;
};

using Action =
    std::variant<Answer, Propose, KeepFiles, LeaveFiles, NotePlace, LookWhetherOver, NoteServer,
                 EndServer, BeginServer, HandOver, LetIn, ReleaseLog, Publish, AbandonPacking,
                 Published, NotPublished, Fail, EndHandedOver, LogMessage>;
using ActionList = std::vector<Action>;

struct Options {
  bool container = false;     // the server's files can be kept and rolled back
  bool restarts = false;      // the group allows the server to be ended for a checkpoint
  bool log_ends = false;      // the log ends with the nodes
  bool keeps_files = false;   // the server's files are for the group's next start
  std::int64_t every_ns = 0;  // 0: no schedule
};

}  // namespace change

class ServerChange {
 public:
  // The time that a server has to end after it was ordered to.
  static constexpr std::int64_t kEndNs = 20'000'000'000;
  // How often a server that is about to end is looked at: no event reports that.
  static constexpr std::int64_t kLookNs = 500'000;
  // How often a server that ends or is on trial is looked at.
  static constexpr std::int64_t kWaitNs = 100 * kLookNs;
  // How long a new server that listens is watched before clients are let in.
  static constexpr std::int64_t kTrialNs = 2'000'000'000;

  explicit ServerChange(const change::Options& options) noexcept : options_(options) {}

  void step(const change::Event& event, std::int64_t now_ns);
  // Returns the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(change::ActionList& out);
  // When the next Tick is due; kNever: after the next event.
  std::int64_t deadline_ns() const noexcept { return due_ns_; }

  bool holds_log() const noexcept { return restarter_.holds() || handed_over_; }  // HANDOVER-1
  // The server is being ended, or has ended.
  bool under_way() const noexcept { return restarter_.state() != Restarter::State::kIdle; }
  bool handed_over() const noexcept { return handed_over_; }
  // CRIU cannot take a checkpoint at the same time.
  bool busy() const noexcept { return under_way() || due_ || upgrade_.open() || handed_over_; }
  const Upgrade& upgrade() const noexcept { return upgrade_; }
  // Whether Admitted with this entry has an effect.
  bool awaits(Index at) const noexcept { return restarter_.awaits(at) || upgrade_.awaits(at); }
  // Whether EndedAtTurn or Gone was requested by the log, or does not end the group.
  bool expects_end() const noexcept { return restarter_.expects_end() || upgrade_.undecided(); }
  bool expects_kernel_end() const noexcept {
    return restarter_.ended() || restarter_.state() == Restarter::State::kWaiting;
  }
  // Whether this output must be hidden from clients for now (UPGRADE-1).
  bool holds_back(const OutputHeader& header) const noexcept {
    return upgrade_.undecided() &&
           (header.type == OutputType::kListen || header.type == OutputType::kUnlisten);
  }

 private:
  void on(const change::Tick& tick);
  void on(const change::OperatorRequest& asked);
  void on(const change::Committed& entry);
  void on(const change::Admitted& entry);
  void on(const change::EndedAtTurn&);
  void on(const change::EndedInKernel& server);
  void on(const change::FailedToStart& server);
  void on(const change::PutOut& output);
  void on(const change::Proposed& proposed);
  void on(const change::Looked& looked);
  void on(const change::EndRefused& refused);
  void on(const change::Begun& begun);
  void on(const change::Packed& packed);

  void ask(const change::OperatorRequest& asked, change::Purpose purpose);
  const char* refusal(const change::OperatorRequest& asked, std::string& why) const;
  void answer(change::Purpose purpose, const char* refusal, Index index, std::string text);
  void propose_begin(const change::Tick& tick);
  void decide_trial(const change::Tick& tick);
  void ask_by_schedule(const change::Tick& tick);
  void end_committed(const change::Committed& entry);
  void begin_committed(const change::Committed& entry);
  void trial_failed(const std::string& why, bool dead);
  void stays_if_admitted(Index at);
  void over();
  void begin_if_ended();
  void hand_over();
  void end_handed_over(const std::string& why_not);
  void fail(change::Fail::Cause cause, std::string why);
  void log_message(bool warns, std::string text);

  const change::Options options_;
  change::ActionList actions_;
  std::int64_t now_ns_ = 0;
  std::int64_t due_ns_ = kNever;
  change::Tick tick_;  // the last one
  Restarter restarter_;
  Upgrade upgrade_;
  bool ended_in_kernel_ = false;           // in the kernel, while another one is to replace it
  std::string not_kept_;                   // why its files are not kept
  bool rolls_back_ = false;                // the server that begins is the previous one
  bool due_ = false;                       // a checkpoint is to be published
  View begin_proposed_{};                  // by this replica, for the server that ends
  std::int64_t ending_ns_ = 0;             // since when it ends; 0: it does not
  std::int64_t schedule_request_ns_ = 0;   // the last request by the schedule
  std::uint64_t inputs_at_request_ = 0;    // inputs before that request
  std::int64_t packing_ns_ = 0;            // since when files are packed; 0: none are
  std::string next_build_;                 // the build that continues; "": this one
  bool handed_over_ = false;               // the server has ended for next_build_
  std::int64_t trial_ns_ = 0;              // since when the server is on trial; 0: it is not
  std::int64_t listens_ns_ = 0;            // since when it listens; 0: it does not
  View trial_end_view_{};                  // the view in which this replica ended the trial
  std::vector<change::PutOut> kept_back_;  // output of the server on trial, in order
};

}  // namespace crane::replica
