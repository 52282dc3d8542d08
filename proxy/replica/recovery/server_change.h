// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica decides when its server is ended and another one takes its place on its files, at
// one place of the log, on all replicas: for a checkpoint without processes where CRIU refuses the
// server (restarter.h), for another command line or newer files of the machine (upgrade.h), or for
// another build of Crane, which goes on from that checkpoint while this node ends (a hand-over).
//
//   Asked, or the schedule -> Propose kEnd       Committed kEnd   -> KeepFiles
//   EndedAtTurn, Tick      -> Propose kBegin     Committed kBegin -> NotePlace; the log is held
//   Tick -> LookWhetherOver      Looked -> NoteServer, EndServer      Gone, Tick -> BeginServer
//   Begun -> ReleaseLog          Tick -> Publish                      Packed -> Published
//
// The contract with the shell (proxy/host/recovery/server_restart.h) is that of
// consensus/core/step.h: actions are carried out in order and completely before those of a later
// step, every event is legal in every state, and stale ones are ignored.  Each Propose is answered
// by Proposed before the next Tick; LookWhetherOver, BeginServer and Publish by Looked, Begun and
// Packed; EndServer by Gone or EndRefused.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT RESTART-1  Each server's end is asked for once per view, by a leader whose own server
//                      ended or did not for kEndNs.
// INVARIANT RESTART-2  What goes on with the new server is noted when the old one can do nothing
//                      any more, and published only after the new one runs.
// INVARIANT HANDOVER-1  Behind the entry at which a server ends for another build, this build gives
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

// What a proposed RESTART entry is for.
enum class Purpose : std::uint8_t {
  kRestart,     // an operator's, a checkpoint
  kScheduled,   // the same, without an operator
  kReplace,     // an operator's, another command line or build
  kEndOfTrial,  // the server on trial did not listen in time
  kKeep,        // it stays
  kBegin,
};
// The place of a RESTART entry.
struct Place {
  consensus::LogPlace at;
  std::uint64_t stamp_ns = 0;
  std::vector<std::byte> facts;  // consensus' own (Consensus::group_facts)
};
// What goes on where the server ends: a build of Crane, or another server.
struct Next {
  std::string build;
  Upgrade::Server server, before;  // `before`: the one that ends
  bool same_program = true;        // the program here is the leader's
};

// --- events

// An operator asks the leader.
struct Asked {
  enum class For : std::uint8_t { kRestart, kUpgrade, kHandOver };
  For wants{};
  std::string bad = {};   // what is wrong with the request; "": nothing
  std::string next = {};  // the entry's text
  std::uint32_t patience_s = 0;
};
// A RESTART entry, before the server gets it.
struct Committed {
  RestartBody body{};
  Place place;
  std::optional<Next> next;
};
struct Admitted {
  Index at{};
};
// The server's main process ended at a turn,
struct EndedAtTurn {};
// or for the kernel: why its files are not kept; "": they are.
struct Gone {
  std::string not_kept;
};
// It could not be started, or took no turn.
struct FailedToStart {
  std::string why;
};
// What keeps_back() says to keep back.
struct PutOut {
  OutputHeader header{};
  ListenPlace place{};  // what follows it
};
struct Proposed {
  Purpose purpose{};
  Index index{};
  std::string why_not;  // "": it is proposed
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
  std::string why_not;  // "": it is published
  bool begun = true;    // false: it did not come to packing
};
// An iteration of the node's loop, and what it sees.
struct Tick {
  View view{};
  bool serves = false;       // it leads and takes clients,
  bool may_lead = false;     // and its server admitted START, and nothing stops it
  bool done = false;         // the replica has come to its end
  bool publishes = false;    // a checkpoint of this replica may be made now
  bool member = true;        // and what is there is worth one: a voter that has caught up
  bool refused = false;      // CRIU does not dump this server
  bool runs = false;         // it has been started
  Index missed{};            // up to here what is asked was asked of an earlier life
  Index applied{};           // what the server has admitted
  std::uint64_t inputs = 0;  // of clients, so far
};

using Event = std::variant<Tick, Asked, Committed, Admitted, EndedAtTurn, Gone, FailedToStart,
                           PutOut, Proposed, Looked, EndRefused, Begun, Packed>;

// --- actions

// To the operator.
struct Answer {
  const char* refusal = nullptr;  // nullptr: the server ends at entry `index`
  Index index{};
  std::string text;
};
struct Propose {
  Purpose purpose{};
  RestartBody body{};
  std::string next;       // behind the body
  bool as_input = false;  // with an input's grant
};
// When this server is gone its files are kept, as those that end at this entry,
struct KeepFiles {
  Index at{};
};
// or as what the group leaves.
struct LeaveFiles {};
// The checkpoint will be as of this entry.
struct NotePlace {
  Place place;
};
// With the node's turn, which it keeps if nothing of the server does anything.
struct LookWhetherOver {};
// What goes on of it; `dead`: it took no turn.  What clients had with it is over.
struct NoteServer {
  bool dead = false;
};
// For the kernel.
struct EndServer {};
// In place of the one that is gone.
struct BeginServer {
  std::optional<Upgrade::Server> server;  // nullopt: as that one
  bool on_files_before = false;           // those that it began with, not those that it left
  bool leaves_files = false;              // LeaveFiles, for the new one
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
// Nothing of it goes on, and the files that were to be published are removed.
struct AbandonPacking {};
struct Published {
  Index at{};
  std::int64_t took_ns = 0;
};
struct NotPublished {
  Index at{};
  std::string why;
};
// The replica cannot go on.
struct Fail {
  enum class Cause : std::uint8_t { kServerNotStarted, kDisagrees, kNoSegment };
  Cause cause{};
  std::string why;
};
// It ends, and another build goes on.
struct EndHandedOver {
  std::string text;
};
struct Say {
  bool warns = false;
  std::string text;
};

using Action =
    std::variant<Answer, Propose, KeepFiles, LeaveFiles, NotePlace, LookWhetherOver, NoteServer,
                 EndServer, BeginServer, HandOver, LetIn, ReleaseLog, Publish, AbandonPacking,
                 Published, NotPublished, Fail, EndHandedOver, Say>;
using ActionList = std::vector<Action>;

struct Options {
  bool container = false;     // the server's files can be kept and rolled back
  bool restarts = false;      // the group allows it to be ended for a checkpoint
  bool log_ends = false;      // with its nodes
  bool keeps_files = false;   // what the server leaves is for the group's next start
  std::int64_t every_ns = 0;  // 0: no schedule
};

}  // namespace change

class ServerChange {
 public:
  // A server that was told to end has so long.
  static constexpr std::int64_t kEndNs = 20'000'000'000;
  // How often a server that should come to its end is looked at: nothing rings then.
  static constexpr std::int64_t kLookNs = 500'000;
  // .. and one that ends, or is on trial.
  static constexpr std::int64_t kWaitNs = 100 * kLookNs;
  // A new server that listens is watched for so long before clients are let in.
  static constexpr std::int64_t kTrialNs = 2'000'000'000;

  explicit ServerChange(const change::Options& options) noexcept : options_(options) {}

  void step(const change::Event& event, std::int64_t now_ns);
  // Gives the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(change::ActionList& out);
  // When the next Tick is due; kNever: after the next event.
  std::int64_t deadline_ns() const noexcept { return due_ns_; }

  bool holds_log() const noexcept { return restarter_.holds() || handed_over_; }  // HANDOVER-1
  // The server ends, or has ended.
  bool under_way() const noexcept { return restarter_.state() != Restarter::State::kIdle; }
  bool handed_over() const noexcept { return handed_over_; }
  // No checkpoint by CRIU can be made beside it.
  bool busy() const noexcept { return under_way() || due_ || upgrade_.open() || handed_over_; }
  const Upgrade& upgrade() const noexcept { return upgrade_; }
  // Whether Admitted with this entry changes anything.
  bool awaits(Index at) const noexcept { return restarter_.awaits(at) || upgrade_.awaits(at); }
  // Whether EndedAtTurn, or Gone, is what the log asked for, or no end of the group.
  bool expects_end() const noexcept { return restarter_.expects_end() || upgrade_.undecided(); }
  bool expects_gone() const noexcept {
    return restarter_.ended() || restarter_.state() == Restarter::State::kWaiting;
  }
  // Whether clients must not know of this yet (UPGRADE-1).
  bool keeps_back(const OutputHeader& header) const noexcept {
    return upgrade_.undecided() &&
           (header.type == OutputType::kListen || header.type == OutputType::kUnlisten);
  }

 private:
  void on(const change::Tick& tick);
  void on(const change::Asked& asked);
  void on(const change::Committed& entry);
  void on(const change::Admitted& entry);
  void on(const change::EndedAtTurn&);
  void on(const change::Gone& server);
  void on(const change::FailedToStart& server);
  void on(const change::PutOut& output);
  void on(const change::Proposed& proposed);
  void on(const change::Looked& looked);
  void on(const change::EndRefused& refused);
  void on(const change::Begun& begun);
  void on(const change::Packed& packed);

  void ask(const change::Asked& asked, change::Purpose purpose);
  const char* refusal(const change::Asked& asked, std::string& why) const;
  void answer(change::Purpose purpose, const char* refusal, Index index, std::string text);
  void propose_begin(const change::Tick& tick);
  void judge_trial(const change::Tick& tick);
  void ask_by_schedule(const change::Tick& tick);
  void end_committed(const change::Committed& entry);
  void begin_committed(const change::Committed& entry);
  void trial_failed(const std::string& why, bool dead);
  void stays_if_admitted(Index at);
  void over();
  void begin_if_gone();
  void hand_over();
  void end_handed_over(const std::string& why_not);
  void fail(change::Fail::Cause cause, std::string why);
  void say(bool warns, std::string text);

  const change::Options options_;
  change::ActionList actions_;
  std::int64_t now_ns_ = 0;
  std::int64_t due_ns_ = kNever;
  change::Tick tick_;  // the last one
  Restarter restarter_;
  Upgrade upgrade_;
  bool gone_ = false;                     // for the kernel, while another one is to take its place,
  std::string not_kept_;                  // and its files are not kept, because of this
  bool rolls_back_ = false;               // the server that begins is the one before
  bool due_ = false;                      // to be published
  View begin_proposed_{};                 // here, for the server that ends
  std::int64_t ending_ns_ = 0;            // since when it ends; 0: it does not
  std::int64_t schedule_request_ns_ = 0;  // when the schedule last asked,
  std::uint64_t asked_after_ = 0;         // and how many inputs there were before
  std::int64_t packing_ns_ = 0;           // since when; 0: nothing is packed
  std::string next_build_;                // for whose server this one ends; "": ours
  bool handed_over_ = false;              // and has ended
  std::int64_t trial_ns_ = 0;             // since when the server is on trial; 0: it is not,
  std::int64_t listens_ns_ = 0;           // and listens; 0: it does not
  View trial_end_view_{};                 // the view in which the trial was ended from here
  std::vector<change::PutOut> kept_back_;  // of the server on trial, in order
};

}  // namespace crane::replica
