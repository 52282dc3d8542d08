// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connects the recovery machine (proxy/replica/recovery/recovery.h) to the node: gathers facts,
// passes it each event, and carries out its actions.
//
//   begin() -> open(parts) -> opened(group) -> entries, step() .. -> stop()
//
// The parts below do not know each other; they communicate through this class.
//
// Threads: the node's one thread, inside its event loop.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/kept.h"
#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/base/oom_kills.h"
#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/host/agreed.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/checkpoint_packer.h"
#include "proxy/host/recovery/server_dump.h"
#include "proxy/host/recovery/server_parts.h"
#include "proxy/host/recovery/server_restart.h"
#include "proxy/host/recovery/server_run_time.h"
#include "proxy/host/recovery/shipping.h"
#include "proxy/host/recovery/start_check.h"
#include "proxy/host/recovery/starting_point.h"
#include "proxy/host/status.h"
#include "proxy/replica/recovery/recovery.h"
#include "proxy/replica/role/leadership.h"
#include "runtime/control/schema.h"
#include "runtime/control/verdict.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class Recovery final : public EventSink, public CheckpointPacker::Owner, public Shipping::Owner {
 public:
  // `member`: false for a replay, which takes no checkpoints.  The references must outlive it.
  Recovery(event_base* base, const Config& config, const replica::Leadership& leadership,
           const Agreed& agreed, bool member, RecoveryOwner& owner);
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  // --- setting up, in this order
  // Chooses the replica's starting point; a failure ends the node.
  Outcome begin();
  const StartingPoint& start() const noexcept { return start_; }
  void open(ServerParts parts);
  // Call before opened() if no server can begin at the start of the log (VOTES-1).
  void be_acceptor_only() noexcept { acceptor_only_ = true; }
  // The log is open; `group` must outlive this object.
  void opened(consensus::Consensus& group);

  // --- the log
  bool holds_log() const noexcept { return machine_.holds_log() || restart_->holds_log(); }
  // The server, which is at `applied`, waits for the holder, and not for its own progress.
  bool holds_server(Index applied) const noexcept {
    return machine_.waits_for_dump(applied) || restart_->holds_log();
  }
  // The item in this entry that prevents this replica from continuing (StartCheck); nullptr: none.
  const char* difference(const consensus::EntryView& entry) {
    return member_ ? start_check_.look(entry) : nullptr;
  }
  // An entry: call before and after it goes to the server.
  void before_server(const consensus::EntryView& entry);
  void after_server(const consensus::EntryView& entry);
  void admitted(Index at) { restart_->admitted(at); }
  // Whether to hold back this output of a server on trial (UPGRADE-1); release_output() may follow.
  bool holds_back(const OutputHeader& header, const ListenPlace& place) {
    return restart_->holds_back(header, place);
  }
  // The replica votes without a server; its entries go to no server.
  bool acceptor_only() const noexcept { return acceptor_only_; }
  // Why, if there is a checkpoint at which it cannot begin; "": there is no such checkpoint.
  std::string why_no_server() const;
  // Whether `peer` has a server, by its own report; false: it only votes.
  bool has_server(ReplicaId peer) const;
  // The replica to which this leader hands the lead, if no other is named.
  std::optional<ReplicaId> successor();
  // The end of its log when it began.
  Index held() const noexcept { return machine_.held(); }
  // Messages of other replicas.
  void on_report(ReplicaId from, const replica::CommittedMessage& message) {
    feed(replica::PeerCommitted{from, message});
  }
  void on_report(const replica::CheckpointNote& note) { feed(replica::PeerCheckpoint{note}); }
  void on_report(const replica::RefusalMessage& note) { feed(replica::PeerRefusal{note}); }
  void on_report(ReplicaId from, const replica::WishRefusal& note) {
    feed(replica::PeerWishRefused{from, note});
  }
  void on_report(ReplicaId from, const replica::CheckpointWish& wish) {
    feed(replica::PeerWish{from, wish});
  }
  // A replica has connected to fetch a checkpoint.
  void visited(ReplicaId from, std::unique_ptr<consensus::SecureLink> link);

  // --- the server
  // Begins to start or to restore it.
  Outcome start_server();
  // It runs; true: its processes were restored, and its ports are to be opened.
  Result<bool> server_started(std::string& why);
  // Its main process ended, at a turn or in the kernel; false: the end was not requested.
  bool ended_at_turn() { return restart_->ended_at_turn(); }
  bool ended() { return restart_->ended(); }
  // It has ended for another build of Crane: no other server begins in this process (HANDOVER-1).
  bool handed_over() const noexcept { return restart_->handed_over(); }
  // It is being ended, and another one takes its place.
  bool restarts_server() const noexcept { return restart_->under_way(); }
  // It did not start, or took no turn; false: it is not on trial for an upgrade.
  bool server_failed(const std::string& why);
  // A process of the server was killed on this replica only; the node ends.
  void server_died();
  const OomKills& oom_kills() const noexcept { return oom_kills_; }
  void dump_prepared();
  void dump_ended(const std::string& why_not, const std::string& refusal);

  // --- the loop
  struct Inputs {
    bool serves = false;    // it leads and takes clients
    bool admitted = false;  // it leads, and its server admitted START
    bool stopping = false, done = false;
  };
  void step(const Inputs& seen, std::int64_t now_ns);
  // Checks whether the replica has caught up with the log.  `behind_ns`: age of the oldest entry
  // that its server has not run.
  void step_catch_up(std::int64_t behind_ns);
  bool catches_up() const noexcept { return machine_.catches_up(); }
  // The progress of the replica with the entries that it missed.
  const replica::RunMeter& meter() const noexcept { return machine_.meter(); }
  std::int64_t due_ns() const noexcept { return std::min(restart_due_ns_, machine_.due_ns()); }
  // Whether inputs wait for a checkpoint, because the log since the newest one fills the ring.
  bool log_is_full() const noexcept { return machine_.log_is_full(); }

  // --- operators
  std::string ask(const control::Message& request);
  std::string upgrade(const control::Message& request);
  void suggest_checkpoint() { feed(replica::CheckpointSuggested{}); }
  // The number of checkpoints published or given up.
  std::uint64_t checkpoints_tried() const noexcept {
    return machine_.checkpoint().taken + machine_.checkpoint().failed;
  }
  bool takes_checkpoint() const noexcept { return !machine_.idle(); }
  const std::string& refusal() const noexcept { return machine_.refusal(); }
  void describe(NodeStatus& status);

  // At entry `at` this replica was found to have diverged somewhere after entry `verified`.
  void distrust(std::uint64_t verified, Index at);
  void stop();

 private:
  void woke() override { owner_.woke(); }
  bool knows(ReplicaId peer) const override;
  void lacked(ReplicaId peer, Index behind) override { feed(replica::Lacked{peer, behind}); }
  void packed(checkpoint::Tier tier, Index at, const std::string& why_not) override;
  void step_restart(const Inputs& seen, std::int64_t now_ns);
  void rely_on_checkpoints();
  Index trusted() const;
  bool reaches_beginning() const;

  // --- the machine
  void feed(replica::Event event) override;
  void tick(std::int64_t now_ns);
  void step_all();
  // The view of the group used for the event is at most `look_ns` old.
  void step_machine(const replica::Event& event, std::int64_t now_ns, std::int64_t look_ns);
  void look_at_group(std::int64_t now_ns);
  replica::Facts facts(std::int64_t now_ns) const;
  void carry_out_all();
  void carry_out(const replica::LogMessage& action);
  void carry_out(const replica::SendNote& action);
  void carry_out(const replica::ProposeCheckpoint& action);
  void carry_out(const replica::Answer& action);
  void carry_out(const replica::Restart& action);
  void carry_out(const replica::FindCheckpoints& action);
  void carry_out(const replica::FetchCheckpoint& action);
  void carry_out(const replica::NoteLogGone&) { start_.note_log_lost(); }
  void carry_out(const replica::KeepLog& action);
  void carry_out(const replica::ReportLag& action) {
    group_->lags(static_cast<std::uint64_t>(action.ns), action.ran);
  }
  void carry_out(const replica::ReportCaughtUp&) { owner_.caught_up(); }
  void carry_out(const replica::ReportRefusal& action) { owner_.refusal_changed(action.reason); }
  void carry_out(const replica::HurryPacking&);
  void carry_out(const replica::Prepare& action);
  void carry_out(const replica::Look& action) { feed(dump_->look(action.at)); }
  void carry_out(const replica::Slide&) { feed(replica::Slid{dump_->slide()}); }
  void carry_out(const replica::Dump&);
  void carry_out(const replica::ReleaseLog&) { dump_->release_log(); }
  void carry_out(const replica::Pack&);
  void carry_out(const replica::Discard&) { dump_->discard(); }

  void blame_checkpoint();

  event_base* base_;
  const Config& config_;
  const replica::Leadership& leadership_;
  const Agreed& agreed_;
  const bool member_;
  RecoveryOwner& owner_;
  consensus::Consensus* group_ = nullptr;
  std::optional<ServerParts> parts_;
  StartingPoint start_;
  StartCheck start_check_;
  std::unique_ptr<CheckpointPacker> packer_;
  std::unique_ptr<ServerDump> dump_;
  std::unique_ptr<ServerRestart> restart_;
  std::unique_ptr<Shipping> shipping_;  // nullptr: all replicas are on this machine
  checkpoint::Newest newest_;           // the newest checkpoint on this machine
  ServerRunTime run_time_;
  OomKills oom_kills_;
  bool acceptor_only_ = false;
  Inputs seen_;  // as of the last step
  std::int64_t restart_due_ns_;

  replica::Recovery machine_;
  std::deque<replica::Event> events_;  // not yet passed to the machine
  bool carrying_out_ = false;
  std::vector<replica::MemberView> members_;  // as of the last look
  Index committed_{};
  bool needs_checkpoint_ = false;
  std::int64_t last_look_ns_ = 0, stepped_ns_ = 0;
  std::string answer_;  // to the current request of an operator
};

}  // namespace crane::node
