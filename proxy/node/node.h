// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica's node: proxy, consensus, slot 0 of the scheduler and monitor, in one thread around
// one event loop.  Node creates the parts in the order of declaration and passes events between
// them; each part owns its state.
//
//   clients -> proxy -> proposals -> consensus | on_committed -> intake -> Paxos sequence
//           -> (server) -> output ring -> on_output -> proxy -> clients
//
// An iteration does all pending work, then sleeps in the event loop.  Before it sleeps it sets
// node_asleep in the segment and checks for work once more.  So a busy server and a busy node make
// no system calls for each other: a server thread rings the doorbell only for a sleeping node.
//
// Threads: one.

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "consensus/consensus.h"
#include "proxy/clients/proxy.h"
#include "proxy/host/agreed.h"
#include "proxy/host/clients_host.h"
#include "proxy/host/config.h"
#include "proxy/host/control_socket.h"
#include "proxy/host/event_loop.h"
#include "proxy/host/host_role.h"
#include "proxy/host/http/http_service.h"
#include "proxy/host/listeners.h"
#include "proxy/host/live_check.h"
#include "proxy/host/log_bounds.h"
#include "proxy/host/log_intake.h"
#include "proxy/host/mode.h"
#include "proxy/host/operator_links.h"
#include "proxy/host/operator_requests.h"
#include "proxy/host/proposals.h"
#include "proxy/host/recovery/recovery.h"
#include "proxy/host/replica_server.h"
#include "proxy/host/service.h"
#include "proxy/host/shutdown.h"
#include "proxy/host/slice_watch.h"
#include "proxy/host/stall_watch.h"
#include "proxy/host/status_reporter.h"
#include "proxy/host/supervisor.h"
#include "proxy/replica/replica.h"
#include "proxy/replica/role/lead_watch.h"
#include "proxy/replica/role/leadership.h"
#include "proxy/replica/role/pacing.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class Node final : public EventLoop::Owner,
                   public ControlSocket::Owner,
                   public HostRole::Owner,
                   public HttpService::Owner,
                   public LogIntake::Owner,
                   public LogReader,
                   public OperatorLinks::Owner,
                   public OperatorRequests::Owner,
                   public Proposals::Owner,
                   public RecoveryOwner,
                   public ReplicaServer::Owner,
                   public Service::Owner,
                   public Supervisor::Owner {
 public:
  // `mode` must outlive the node.
  Node(const Config& config, int control_fd, NodeMode& mode);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Runs until the group is stopped, the server has ended, or this replica has failed.
  ExitStatus run();
  // The server's exit status as a shell shows it, once it has ended at a turn; else 0.
  int server_exit_code() const noexcept { return server_ == nullptr ? 0 : server_->exit().code(); }

 private:
  // --- setting up (node_open.cc); false: fail() was called
  bool open();
  void open_log_side();
  bool open_server();
  void open_leader_side(std::unique_ptr<proxy::SharedSockets> sockets);
  void open_checks();
  void open_control_socket();
  bool open_group();
  void open_operators();
  void open_http();

  // --- the loop (node.cc)
  bool round();
  void look_for_memory();
  void propose_inputs();
  std::int64_t report_progress();
  std::int64_t watch_lead();
  replica::Life life() const noexcept;
  bool work_waiting() const noexcept;
  void sleep_until_event();
  void shut_down();
  void forward_remaining_clients();

  // --- messages of other replicas, and the log (node_events.cc)
  void on_message(ReplicaId from, std::span<const std::byte> bytes);
  void receive(ReplicaId from, const replica::ServerPlaceMessage& message);
  void on_visitor(ReplicaId from, std::unique_ptr<consensus::SecureLink> link);
  void on_committed(const consensus::EntryView& entry);

  // --- the server (node_events.cc)
  void server_started(pid_t pid) override;
  void server_ended(int status) override;
  void server_failed(ExitStatus status, const std::string& why) override;
  void process_killed(std::uint32_t process, std::uint32_t pid) override;
  void handle_server_output(const OutputHeader& header, proxy::Pieces pieces, bool last) override;
  void dump_prepared() override { recovery_->dump_prepared(); }
  void dump_ended(const std::string& why_not, const std::string& refusal) override {
    recovery_->dump_ended(why_not, refusal);
  }

  // --- operators and crane-run (node_requests.cc)
  bool take_over(int fd, const std::string& request) override;
  std::string answer(const std::string& request) override { return requests_->answer(request); }
  NodeStatus status() override { return status_->status(); }
  std::string status_text() override;
  nlohmann::json status_json() override;
  std::string ask_checkpoint(const control::Message& request) override {
    return recovery_->ask(request);
  }
  std::string ask_upgrade(const control::Message& request) override {
    return recovery_->upgrade(request);
  }
  bool takes_checkpoint() const override { return recovery_->takes_checkpoint(); }
  void send_signal(std::uint32_t signo) override {
    proxy_->batch().add(EntryType::kSignal, SignalBody{signo, 0});
  }
  void drain() override;
  void leave() override { end_.leave_now(); }
  bool has_server(ReplicaId peer) const override { return recovery_->has_server(peer); }
  void abdicate(const char* why) override {
    consensus_->abdicate(why, recovery_ == nullptr ? std::nullopt : recovery_->successor());
  }
  std::int64_t input_drain_ns() const override {
    return proxy_->moves() ? proxy::kInputDrainNs : 0;
  }
  void listener_received(const Place& place, int fd) override { proxy_->add_listener(place, fd); }
  void listen_failed(const Place& place, int error, const std::string& message) override;
  void listener_lost() override;
  void not_published(const Place& place) override;
  void stop_requested() override;
  void signal_requested(std::uint32_t signo, std::uint32_t pid) override;
  void member_requested(const control::Message& change) override;
  void checkpoint_requested() override { recovery_->suggest_checkpoint(); }
  void supervisor_lost() override;
  void signalled(int signo) override;

  // --- requests of one part to another (node_events.cc)
  void woke() override { server_->node_awake(); }
  void fail(ExitStatus status, const std::string& why) override;
  bool holds_log() const override { return recovery_->holds_log(); }
  void entry_held(const consensus::EntryView& entry) override;
  void deliver(const consensus::EntryView& entry, bool was_held) override;
  bool has_early_point(const consensus::EntryView& entry);
  bool server_has_room() const override { return !server_->scheduler_link().spooling(); }
  bool group_began() const override { return value(intake_->first_start()) != 0; }
  Result<Index> propose(EntryType type, GrantTurns grant,
                        std::span<const std::byte> body) override {
    return proposals_->propose(type, grant, body, now_ns_);
  }
  GrantTurns input_grant() const override { return proposals_->input_grant(); }
  std::int64_t lag_ns(ReplicaId peer) const override {
    return proposals_->follower_lag(peer, now_ns_).ns;
  }
  std::optional<control::Readiness> readiness_of(ReplicaId peer) const override;
  void put_out_for_server(const OutputHeader& header, std::span<const std::byte> bytes) override {
    server_->handle_output(header, bytes);
  }
  void release_output(const OutputHeader& header, const ListenPlace& place, bool last) override;
  void refusal_changed(const std::string& reason) override { supervisor_.refused_dumps(reason); }
  void caught_up() override {
    progress_.caught_up();
    supervisor_.caught_up();
  }
  std::vector<std::byte> group_facts() const override { return consensus_->group_facts(); }
  Result<Index> append(const replica::Leadership::Proposal& proposal, GrantTurns grant,
                       std::span<const std::byte> body) override;
  std::vector<consensus::MemberStatus> members() override { return consensus_->members(); }
  void drain_server() override { server_->drain(); }
  void reign_began() override { live_check_->lead(); }
  void status_changed() override { status_->changed(now_ns_); }
  bool has_supervisor() const override { return supervisor_.present(); }
  bool supervisor_stopped() const override { return supervisor_.stopped(); }

  // When each part must be called next, CLOCK_MONOTONIC; kNever: after the next event.
  struct Due {
    std::int64_t consensus = proxy::kNever, requests = proxy::kNever, stalls = proxy::kNever,
                 slices = proxy::kNever, check = proxy::kNever, progress = proxy::kNever,
                 lead = proxy::kNever;
    std::int64_t first() const noexcept {
      return std::min({consensus, requests, stalls, slices, check, progress, lead});
    }
  };

  const Config config_;
  NodeMode& mode_;
  const Agreed agreed_;
  EventLoop loop_;  // outlives its listeners
  Supervisor supervisor_;
  Shutdown end_;
  replica::Leadership leadership_;
  std::unique_ptr<consensus::Consensus> consensus_;
  std::unique_ptr<LogIntake> intake_;
  replica::ProgressReporter progress_;
  std::unique_ptr<Recovery> recovery_;
  std::unique_ptr<ReplicaServer> server_;
  std::unique_ptr<ClientsHost> clients_host_;
  std::unique_ptr<proxy::Proxy> proxy_;
  std::unique_ptr<HostRole> host_;  // nullptr: a crane-run has started this node
  std::unique_ptr<Proposals> proposals_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Listeners> listeners_;
  std::unique_ptr<StallWatch> stalls_;
  std::unique_ptr<SliceWatch> slices_;
  replica::LeadWatch lead_watch_;
  std::unique_ptr<LiveCheck> live_check_;
  std::unique_ptr<StatusReporter> status_;
  std::unique_ptr<OperatorRequests> requests_;
  std::unique_ptr<ControlSocket> control_socket_;
  std::unique_ptr<OperatorLinks> operator_links_;
  std::unique_ptr<HttpService> http_;  // nullptr: no HTTP
  std::int64_t now_ns_ = 0;            // CLOCK_MONOTONIC at the start of the round
  Due due_;
  LogBounds logs_{logs_of(config_)};
};

}  // namespace crane::node
