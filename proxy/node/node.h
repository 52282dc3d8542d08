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

#include "consensus/consensus.h"
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
#include "proxy/node/recovery/lasting_files.h"
#include "proxy/node/recovery/recovery.h"
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

  // --- recovery (node_server.cc) ---
  std::unique_ptr<Recovery> make_recovery();
  void open_recovery();
  void step_recovery();
  void take_up_state();
  void take_up_server();
  void tell_members();

  // --- live checking (node_log.cc) ---
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

  std::unique_ptr<Recovery> recovery_;
  std::unique_ptr<LiveCheck> live_check_;
  bool flipped_ = false;
};

}  // namespace crane::node
