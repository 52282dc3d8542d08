// SPDX-License-Identifier: Apache-2.0
#pragma once
// All that lets a replica recover: where this one begins, the checkpoints that it makes, asks for
// and gives to others, the restart of a server that CRIU does not dump, and what it lacks.
//
//   begin() -> open(parts) -> opened(group) -> entries, step() .. -> stop()
//
// The parts below know nothing of each other; what one must know of another goes through here.
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT VOTES-1  A replica whose log does not reach back to where a server can begin votes and
//                    holds the log, without a server, until a checkpoint is there.  While another
//                    replica serves, it restarts only at one behind all that its log held, and as
//                    may_restart() says.
// INVARIANT RECOVERY-1  At most one of a dump and a restart holds the log, and one waits for the
//                       other's checkpoint to be packed.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/kept.h"
#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/host/agreed.h"
#include "proxy/host/config.h"
#include "proxy/host/leadership.h"
#include "proxy/host/recovery/checkpoint_packer.h"
#include "proxy/host/recovery/checkpoint_requests.h"
#include "proxy/host/recovery/missing_entries.h"
#include "proxy/host/recovery/recovery_tier.h"
#include "proxy/host/recovery/server_dump.h"
#include "proxy/host/recovery/server_parts.h"
#include "proxy/host/recovery/server_restart.h"
#include "proxy/host/recovery/server_run_time.h"
#include "proxy/host/recovery/shipping.h"
#include "proxy/host/recovery/start_check.h"
#include "proxy/host/recovery/starting_point.h"
#include "proxy/host/status.h"
#include "proxy/replica/recovery/catch_up.h"
#include "proxy/replica/recovery/log_keeper.h"
#include "proxy/replica/recovery/overtaking.h"
#include "proxy/replica/recovery/run_meter.h"
#include "runtime/control/verdict.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

struct RecoveryActions {
  std::function<void()> on_event;  // before whatever an event brings
  std::function<Result<Index>(EntryType type, GrantTurns grant, std::span<const std::byte> body)>
      propose;
  std::function<GrantTurns()> input_grant;
  // While this replica leads: how far a follower's server is behind its own, ns.
  std::function<std::int64_t(ReplicaId who)> lag_ns;
  // What a replica says of itself, this one as well; nullopt: nothing is known.
  std::function<std::optional<control::Readiness>(ReplicaId who)> told;
  // As if the server had put it out.
  std::function<void(const OutputHeader& header)> put_out;
  // What keeps_back() kept back.
  std::function<void(const OutputHeader& header)> let_in;
  // Why CRIU does not dump this server, for crane-run; empty: it does.
  std::function<void(const std::string& reason)> refusal_changed;
  // The replica has run what it missed.
  std::function<void()> caught_up;
  // The replica cannot go on.
  std::function<void(ExitStatus status, const std::string& why)> failed;
};

class Recovery {
 public:
  // `member`: a replay takes no checkpoints.  The references outlive it.
  Recovery(event_base* base, const Config& config, const Leadership& leadership,
           const Agreed& agreed, bool member, RecoveryActions actions);
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  // --- setting up, in this order
  // Where the replica begins; a failure ends the node.
  Outcome begin();
  const StartingPoint& start() const noexcept { return start_; }
  void open(ServerParts parts);
  // Before opened(): no server can begin where the log does (VOTES-1).
  void be_acceptor_only() noexcept { acceptor_only_ = true; }
  // The log is open; `group` outlives this.
  void opened(consensus::Consensus& group);

  // --- the log
  bool holds_log() const noexcept;
  // What of it this replica cannot go on with (StartCheck); nullptr: nothing.
  const char* difference(const consensus::EntryView& entry) {
    return member_ ? start_check_.look(entry) : nullptr;
  }
  // An entry, before the server gets it, and after it did.
  void before_server(const consensus::EntryView& entry);
  void after_server(const consensus::EntryView& entry, std::int64_t now_ns);
  void admitted(Index at) { restart_->admitted(at); }
  // The server put this out while it is on trial (UPGRADE-1): let_in() follows, or nothing.
  bool keeps_back(const OutputHeader& header) { return restart_->keeps_back(header); }
  bool acceptor_only() const noexcept { return acceptor_only_; }
  // .. so no server gets this entry.
  void passed_over(const consensus::EntryView& entry, std::int64_t now_ns);
  // Why, if a checkpoint is there that it cannot begin at; "": there is none.
  std::string why_no_server() const;
  // False: the replica only votes, as it has told, or as this one knows of itself.
  bool has_server(ReplicaId who) const;
  // Up to here it held the log when it began.
  Index held() const noexcept { return log_end_; }
  // What other replicas tell.
  void heard(ReplicaId from, const replica::CommittedMessage& message);
  void heard(const CheckpointNote& note, std::int64_t now_ns);
  void heard(const replica::RefusalMessage& note) { tier_.heard(note); }
  // A replica came for a checkpoint.
  void visited(ReplicaId from, std::unique_ptr<consensus::SecureLink> link);

  // --- the server
  // Begins to start it, or brings it back.
  Outcome start_server();
  // It runs; true: its processes recovered, and its ports are to be opened.
  Result<bool> server_started(std::string& why);
  // Its main process ended at a turn, or for the kernel; false: that was not asked for.
  bool ended_at_turn() { return restart_->ended_at_turn(); }
  bool ended() { return restart_->ended(); }
  // It has ended for another build of Crane: no server begins here (HANDOVER-1).
  bool handed_over() const noexcept { return restart_->handed_over(); }
  // It is told to end, and another one takes its place.
  bool restarts_server() const noexcept { return restart_->under_way(); }
  // It did not start, or took no turn; false: no upgrade is on trial.
  bool server_failed(const std::string& why) { return restart_->failed_to_start(why); }
  void dump_prepared(std::int64_t now_ns);
  void dump_ended(const std::string& why_not, const std::string& refusal);

  // --- the loop
  struct Seen {
    bool serves = false;    // it leads and takes clients
    bool admitted = false;  // it leads, and its server admitted START
    bool stopping = false, done = false;
  };
  void step(const Seen& seen, std::int64_t now_ns);
  // Whether the replica has caught up with the log.  `behind_ns`: age of the oldest entry that its
  // server has not run.
  void step_catch_up(std::int64_t behind_ns, std::int64_t now_ns);
  bool catches_up() const noexcept { return catch_up_.active(); }
  // How far the replica is with what it missed.
  void step_meter(std::int64_t now_ns);
  const replica::RunMeter& meter() const noexcept { return meter_; }
  std::int64_t due_ns() const noexcept { return due_ns_; }
  // Inputs wait for a checkpoint, because the log since the newest one fills the ring.
  bool log_is_full() const noexcept { return log_keeper_.full(); }

  // --- operators
  std::string ask(const nlohmann::json& request);
  std::string upgrade(const nlohmann::json& request);
  void ask_if_wanted() { requests_->ask_if_wanted(leadership_.started()); }
  // Published ones and those that were given up.
  std::uint64_t checkpoints_tried() const noexcept {
    return dump_->status().taken + dump_->status().failed;
  }
  bool takes_checkpoint() const noexcept { return !dump_->idle(); }
  const std::string& refusal() const noexcept { return tier_.refusal(); }
  void describe(NodeStatus& status);

  // This replica diverged somewhere behind entry `verified`, which was found at entry `at`.
  void distrust(std::uint64_t verified, Index at);
  void stop();

 private:
  void open_requests();
  void open_shipping();
  bool knows(ReplicaId who) const;
  void packed(checkpoint::Tier tier, Index at, const std::string& why_not);
  void step_dump(std::int64_t now_ns);
  void step_restart(const Seen& seen, std::int64_t now_ns);
  void look_for_newer(std::int64_t now_ns);
  void look_for_first(std::int64_t now_ns);
  void begin_at_distrusted(std::span<const VoterSeen> voters);
  std::optional<Index> waits_behind(ReplicaId who) const;
  std::vector<VoterSeen> voters_seen() const;
  void watch_run_time(std::int64_t now_ns);
  void hurry_packing();
  void announce_checkpoints(std::int64_t now_ns);
  void announce(const CheckpointNote& note, std::int64_t now_ns);
  void rely_on_checkpoints();
  void keep_log(std::int64_t now_ns);
  bool followers_stand() const;
  Index trusted() const;
  Index applied() const;
  bool reaches_beginning() const;

  event_base* base_;
  const Config& config_;
  const Leadership& leadership_;
  const Agreed& agreed_;
  const bool member_;
  const RecoveryActions actions_;
  consensus::Consensus* group_ = nullptr;
  std::optional<ServerParts> parts_;
  StartingPoint start_;
  StartCheck start_check_;
  RecoveryTier tier_;
  std::unique_ptr<CheckpointPacker> packer_;
  std::unique_ptr<ServerDump> dump_;
  std::unique_ptr<ServerRestart> restart_;
  std::unique_ptr<CheckpointRequests> requests_;
  std::unique_ptr<Shipping> shipping_;  // none: all replicas' are on this machine
  MissingEntries missing_;
  replica::LogKeeper log_keeper_;
  std::uint64_t given_up_ = 0;  // checkpoints that replicas said to have given up
  checkpoint::Newest newest_;   // of this machine
  replica::CatchUp catch_up_;
  replica::Overtaking overtaking_;
  ServerRunTime run_time_;
  std::uint64_t taken_ = 0, failed_ = 0;  // of the own checkpoints, that the others were told of
  replica::RunMeter meter_;
  Index log_end_{};  // of the own log, when the node began
  bool acceptor_only_ = false;
  std::int64_t first_look_ns_ = 0;  // when an acceptor looks for a checkpoint again,
  std::int64_t began_ns_ = 0;       // since when it is one,
  std::int64_t known_ns_ = 0;       // and since when it has known one; 0: it knows none
  bool serves_ = false;             // as of the last step
  std::int64_t dump_due_ns_;
  std::int64_t due_ns_;
};

}  // namespace crane::node
