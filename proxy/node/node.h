// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica's node: proxy, consensus, slot 0 of the scheduler and guard, in one thread around one
// event loop.
//
//   clients -> proxy -> consensus.propose | on_committed -> Paxos sequence -> (server) -> output
//   ring -> proxy -> clients
//
// An iteration does all there is to do, then sleeps in the event loop.  Before it sleeps it says so
// in the segment (node_asleep) and looks once more, so that a server that works and a node that
// works cost each other no system call; a server thread rings the doorbell only for a sleeping
// node.
//
// Threads: one.

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/image.h"
#include "checkpoint/kept.h"
#include "checkpoint/tree.h"
#include "checkpoint/worker.h"
#include "consensus/consensus.h"
#include "dmt/anew.h"
#include "dmt/base/clock.h"
#include "dmt/sequence/output.h"
#include "proxy/clients/flow_control.h"
#include "proxy/clients/grants.h"
#include "proxy/clients/server.h"
#include "proxy/clients/virtual_clock.h"
#include "proxy/node/agreed.h"
#include "proxy/node/config.h"
#include "proxy/node/control_socket.h"
#include "proxy/node/event_loop.h"
#include "proxy/node/grant_proposer.h"
#include "proxy/node/guard.h"
#include "proxy/node/host_role.h"
#include "proxy/node/leadership.h"
#include "proxy/node/live_check.h"
#include "proxy/node/log_intake.h"
#include "proxy/node/mode.h"
#include "proxy/node/operator_requests.h"
#include "proxy/node/outputs.h"
#include "proxy/node/pacing.h"
#include "proxy/node/port_questions.h"
#include "proxy/node/quorum_watch.h"
#include "proxy/node/recovery/catch_up.h"
#include "proxy/node/recovery/checkpoint_schedule.h"
#include "proxy/node/recovery/checkpointer.h"
#include "proxy/node/recovery/lasting_files.h"
#include "proxy/node/recovery/node_state.h"
#include "proxy/node/recovery/restarter.h"
#include "proxy/node/segment.h"
#include "proxy/node/server_exit.h"
#include "proxy/node/serving_watch.h"
#include "proxy/node/shutdown.h"
#include "proxy/node/slot0.h"
#include "proxy/node/stall_watch.h"
#include "proxy/node/status.h"
#include "proxy/node/supervisor.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class Shipping;

class Node {
 public:
  // `mode` outlives the node.
  Node(const Config& config, int control_fd, NodeMode& mode);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Runs until the group is told to stop, the server ended, or this replica failed.
  ExitStatus run();
  // The server's exit status as a shell shows it, once it has ended at a turn; else 0.
  int server_exit_code() const noexcept { return exit_.code(); }

 private:
  // --- setting up (node.cc) ---
  bool open();
  bool open_consensus();
  void set_callbacks(consensus::Callbacks& callbacks);
  Result<std::unique_ptr<consensus::Consensus>> open_log(consensus::Options options);
  void open_proxy();
  void open_guard();

  // --- the loop (node.cc) ---
  void iterate();
  bool round();
  void sleep_until_event();
  void step_mode();
  bool work_waiting() const noexcept;
  void arm_timer();
  void awake() noexcept;
  void begin_stop();
  void shut_down();
  std::optional<proxy::SchedulePoint> rest_point();
  void note_rest();

  // --- the log (node_log.cc) ---
  void on_committed(const consensus::EntryView& entry);
  void take_entry(const consensus::EntryView& entry, bool was_held);
  void on_role(consensus::Role role, View view, ReplicaId leader);
  void follow_role();
  void propose_start();
  Result<Index> propose(EntryType type, GrantTurns grant, std::span<const std::byte> body);
  void propose_inputs();
  void propose_on_own();
  void open_intake();
  void open_pacing();
  void throttle();
  void report_progress();
  void open_stall_watch();
  void look_for_stalls();
  void open_port_questions();
  Index applied() const noexcept;

  // --- checkpoints (node_checkpoint.cc) ---
  void open_checkpointer();
  void checkpoint_at(const consensus::EntryView& entry);
  void look_after_checkpoint();
  std::string unrest();
  Outcome prepare_dump();
  Index begin_place();
  Outcome dump();
  Outcome copy_shared();
  Outcome copy_shared_file(const std::string& name, checkpoint::Why& why,
                           std::span<const checkpoint::FileRange> left_out = {}) const;
  bool shares_processor(unsigned a, unsigned b) const;
  void dumped(const std::string& why_not);
  Index slide();
  void note_place(const consensus::EntryView& entry);
  void release_log();
  Outcome publish();
  void take_published();
  void discard();
  std::string ask_for_checkpoint(const nlohmann::json& request);
  void ask_now_and_then();
  void stop_packing();
  bool alone() const;
  void distrust_checkpoints();
  void find_own_checkpoints();
  void tell_of_checkpoints();
  std::string why_no_checkpoints() const;
  Result<std::string> pack(checkpoint::Why& why);
  Error told(const Error& error) const;

  // --- ending the server and starting another one on its files (node_restart.cc) ---
  void open_restarter();
  std::string ask_for_restart();
  void restart_now_and_then();
  void propose_begin();
  void restart_at(const consensus::EntryView& entry);
  void look_after_restart();
  bool is_over();
  void end_server();
  void begin_server_anew();
  void forget_files();
  void publish_restart();
  bool holds_log() const { return checkpointer_->holds() || restarter_->holds(); }
  Result<std::unique_ptr<Segment>> make_segment() const;
  nlohmann::json carried_json() const;
  bool take_carried(const nlohmann::json& state);
  void take_up_new_server();

  // --- what a replica comes back by (node_tier.cc) ---
  void note_refusal(bool dumped, const std::string& refusal);
  bool hear_refusal(std::span<const std::byte> note);
  void set_refusal(const std::string& refusal);
  RecoveryStatus recovery() const;
  bool reaches_beginning() const;

  // --- beginning at a checkpoint, and leaving (node_return.cc) ---
  std::vector<checkpoint::Kept> checkpoints_to_try() const;
  bool find_checkpoint();
  void take_up_log() const;
  bool runs_all_again() const;
  bool is_of_this_configuration(const std::string& path);
  void take_up_state();
  void take_up_server();
  void begin_catching_up();
  void look_whether_caught_up();
  void look_for_newer();
  void help_lagging();
  void tell_members();

  // --- checkpoints of other hosts (node_ship.cc) ---
  void open_shipping();
  bool knows(ReplicaId who) const;
  void take_one_for(ReplicaId who, Index behind);

  void open_live_check();
  LiveCheck::Seen live_check_seen() const noexcept;
  void on_note(ReplicaId from, std::span<const std::byte> note);

  // --- the server (node_server.cc, node_log.cc, node.cc) ---
  std::size_t drain();
  void on_output(const OutputHeader& header, std::span<const std::byte> bytes);
  void start_server();
  void server_started(pid_t pid);
  void server_ended(int status);
  void tell_exit();
  std::string server_maps() const;

  bool open_host();
  void look_at_quorum();
  void pass_on_the_rest();

  // --- outside (node_control.cc) ---
  void open_control_socket();
  void open_requests();
  void ask_for_listener(std::uint16_t port, std::uint64_t backlog);
  void ask_for_missing_listeners();
  std::optional<int> ask_for_port(std::uint16_t port);
  // node_supervise.cc
  void watch_supervisor();
  bool take_supervisor(int fd, const std::string& request);
  void tell_supervisor();
  NodeStatus status();
  void report_status();
  void fail(ExitStatus status, const std::string& why);

  const Config config_;
  EventLoop loop_;  // outlives all that listens to it
  Supervisor supervisor_;
  std::unique_ptr<ControlSocket> control_socket_;
  std::unique_ptr<OperatorRequests> requests_;
  std::int64_t requests_due_ns_ = proxy::kNever;
  NodeMode& mode_;
  std::unique_ptr<Segment> segment_;
  dmt::Layout* layout_ = nullptr;
  std::unique_ptr<Slot0> slot0_;
  std::unique_ptr<StallWatch> stalls_;
  ServingWatch serving_;
  std::unique_ptr<PortQuestions> ports_;       // binds that wait for an answer
  std::int64_t stall_due_ns_ = proxy::kNever;  // CLOCK_MONOTONIC
  std::unique_ptr<Outputs> outputs_;
  std::unique_ptr<proxy::Proxy> proxy_;
  std::unique_ptr<consensus::Consensus> consensus_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<HostRole> host_;  // none: a crane-run started this node
  QuorumWatch quorum_;
  LastingFiles files_;
  Leadership leadership_;
  const Agreed agreed_;

  std::unique_ptr<LogIntake> intake_;
  std::unique_ptr<GrantProposer> grants_;
  std::unique_ptr<ClientPacing> pacing_;
  std::unique_ptr<ProgressReporter> progress_;
  std::int64_t progress_due_ns_ = proxy::kNever;
  std::int64_t now_ns_ = 0;  // CLOCK_MONOTONIC at the start of the round

  bool removed_ = false;                // from the group, by an operator
  std::uint64_t consensus_due_ns_ = 0;  // CLOCK_MONOTONIC

  ServerExit exit_;
  Shutdown end_;
  bool foretold_ = false;  // the log tells nothing new of stalls

  std::unique_ptr<Checkpointer> checkpointer_;
  std::int64_t checkpoint_due_ns_ = proxy::kNever;  // CLOCK_MONOTONIC
  NodeState noted_;                                 // as of the checkpoint's
  DumpTimes times_;                                 // of the one under way
  DumpTimes last_times_;                            // of the last published one
  std::string no_copies_;                           // why the copies of what it maps are not there
  std::unique_ptr<nlohmann::json> noted_files_;     // file_names() then
  std::string noted_digest_;                        // of the outputs
  std::unique_ptr<checkpoint::Checkpoints> checkpoints_;
  std::optional<checkpoint::Staging> staging_;  // of the one under way
  checkpoint::Worker packer_;
  event packed_event_{};
  std::uint8_t last_asked_ = 0;  // leader: who took the last one
  CheckpointSchedule schedule_{config_.checkpoint_every_s * 1'000'000'000LL,
                               std::uint64_t{config_.checkpoint_log_mb} << 20};
  std::string no_checkpoints_;     // why none are taken here; empty: they are
  std::string refused_;            // why CRIU does not dump this server, once it was tried
  const char* came_back_by_ = "";  // RecoveryStatus
  mutable checkpoint::Newest newest_;
  // Verified on disk and not told to consensus yet, ascending; and the last one that was (G5).
  std::vector<Index> own_checkpoints_;
  Index relied_{};
  std::unique_ptr<Restarter> restarter_;
  std::string restart_files_;    // of the server that ends, or has ended
  std::string server_upper_;     // what the server's files began as; "": the machine's
  bool server_gone_ = false;     // for the kernel, while another one is to take its place
  bool restart_is_due_ = false;  // to be published
  std::string restart_digest_;   // of the outputs then
  NodeState restart_noted_;      // as of the place where it ended
  dmt::Carried carried_;         // likewise
  checkpoint::Tier packs_tier_ = checkpoint::Tier::kCriu;
  std::int64_t packing_ns_ = 0;  // since when
  View begin_proposed_{};        // here, for the server that ends
  std::int64_t told_ns_ = 0;     // since when it ends; 0: it does not
  std::int64_t restarted_ns_ = 0, restart_due_ns_ = proxy::kNever;
  std::uint64_t restarted_after_ = 0;  // how many inputs there were before
  // Restored from: the unpacked checkpoint, and its state.
  std::string restored_from_;
  NodeState restored_;
  std::string restored_json_;
  bool lacking_ = false;                // entries that left the others' logs
  std::int64_t lacking_at_ns_ = 0;      // when to look again whether somebody does
  std::unique_ptr<Shipping> shipping_;  // none: all replicas' are on this machine
  std::int64_t helped_ns_ = 0;          // when one was last asked for, for another replica
  CatchUp catch_up_;
  std::int64_t began_ns_ = 0;  // when this node was opened
  ReturnTimes returned_;

  std::unique_ptr<LiveCheck> live_check_;
  bool flipped_ = false;
};

}  // namespace crane::node
