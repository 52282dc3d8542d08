// SPDX-License-Identifier: Apache-2.0
// Connects the parts of a node.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "checkpoint/fault_points.h"
#include "dmt/base/assert.h"
#include "dmt/hand_off.h"
#include "dmt/scheduler.h"
#include "proxy/clients/tuning.h"
#include "proxy/host/consensus_options.h"
#include "proxy/host/out_of_band.h"
#include "proxy/host/recovered_clients.h"
#include "proxy/host/recovery/early_points.h"
#include "proxy/node/node.h"
#include "runtime/setup/outbound.h"
#include "runtime/setup/preflight.h"

namespace crane::node {
namespace {

// An entry that this node must admit cannot be admitted (its standard error has the reason), and
// the caller cannot return.  The container supervisor ends the server; the others notice that the
// process has ended and elect another leader.
void leave_at_once() noexcept {
  spdlog::error("this replica is fenced, by its node");
  ::_exit(code(ExitStatus::kFenced));
}

proxy::ProxyOptions proxy_options(const dmt::Layout& layout, const Config& config, bool member) {
  proxy::ProxyOptions options;
  options.opens = member;
  options.shares_listeners = !config.host;
  const auto outbound = setup::parse_outbound(config.outbound).value_or(setup::Outbound{});
  options.resolver.server =
      setup::parse_resolver(config.resolver).value_or(crane::VirtualAddress{});
  options.resolver.only_files = !outbound.any && outbound.only.empty();
  options.connection.send_buffer = layout.header.configuration.send_buffer;
  options.connection.receive_window = dmt::kReceiveWindow;
  options.connection.first_window = dmt::kFirstWindow;
  options.queued_bytes_max = proxy::kQueuedBytesMax;
  return options;
}

// Opens the log at the checkpoint's position, or at its beginning for a new server that runs all
// inputs.  If the log does not reach back that far, the replica votes without a server (VOTES-1).
Result<std::unique_ptr<consensus::Consensus>> open_log(const Config& config, NodeMode& mode,
                                                       Recovery& recovery,
                                                       consensus::Options options,
                                                       const LogReader& reader) {
  options.checkpoint = recovery.start().log_position();
  const Index behind = recovery.start().state().at.index;
  auto opened = mode.open_log(options, behind, reader);
  const bool votes =
      replica::may_only_vote(recovery.start().rules(), config.replicas, mode.member());
  if (opened.ok() || opened.error().code != Code::kGone || !votes) return opened;
  options.acceptor_only = true;
  recovery.be_acceptor_only();
  return mode.open_log(std::move(options), behind, reader);
}

// nullptr: connections end with their leader.  Call early, because the keeper copies this process.
std::unique_ptr<proxy::SharedSockets> share_sockets(const Config& config, bool member) {
  if (config.host || config.replicas == 1 || !config.keeps_connections || !member) return nullptr;
  auto sockets = proxy::SharedSockets::open(config.shm_dir + "/" + setup::kConnections);
  if (sockets.ok()) return std::move(sockets).value();
  spdlog::warn("clients will be reset when the leader changes: {}", sockets.error().message());
  return nullptr;
}

}  // namespace

bool Node::open() {
  if (!loop_.open(*this).ok()) {
    fail(ExitStatus::kNoSegment, "no event loop");
    return false;
  }
  now_ns_ = monotonic_ns();  // entries may come while the log is opened
  std::error_code ignored;
  std::filesystem::remove(config_.replica_dir() + "/" + setup::kDrainedMark, ignored);
  if (config_.test_only_faults) checkpoint::die_at_marked_points(config_.replica_dir() + "/faults");
  auto sockets = share_sockets(config_, mode_.member());
  open_log_side();
  if (!open_server()) return false;
  open_leader_side(std::move(sockets));
  open_checks();
  if (host_ != nullptr && !host_->open()) return false;
  server_->open_monitor(loop_.base());
  recovery_->open({config_, server_->segment(), server_->layout(), server_->scheduler_link(),
                   server_->monitor(), server_->outputs(), *stalls_, *intake_, *live_check_,
                   leadership_, server_->exit(), *this});
  open_control_socket();
  return open_group();
}

// Parts that come before the server: the starting point of this replica decides about the segment.
void Node::open_log_side() {
  intake_ = std::make_unique<LogIntake>(*this);
  recovery_ = std::make_unique<Recovery>(loop_.base(), config_, leadership_, agreed_,
                                         mode_.member(), *this);
}

bool Node::open_server() {
  if (const Outcome begun = recovery_->begin(); !begun.ok()) {
    fail(exit_status_of(begun.error()), begun.error().text);
    return false;
  }
  server_ = std::make_unique<ReplicaServer>(config_, mode_, *this);
  std::string why;
  if (const auto status = server_->open(recovery_->start(), why)) {
    fail(*status, why);
    return false;
  }
  dmt::set_fence_handler(leave_at_once);
  return true;
}

void Node::open_leader_side(std::unique_ptr<proxy::SharedSockets> sockets) {
  dmt::Layout& layout = server_->layout();
  clients_host_ = std::make_unique<ClientsHost>(config_, *server_);
  proxy_ = std::make_unique<proxy::Proxy>(
      loop_.base(), proxy_options(layout, config_, mode_.member()), *clients_host_);
  if (sockets) proxy_->share(std::move(sockets));
  if (config_.host) {
    host_ = std::make_unique<HostRole>(loop_.base(), config_, *proxy_, leadership_, *this);
    host_->keep_connections();
  }
  proposals_ = std::make_unique<Proposals>(*this, config_, agreed_, layout, leadership_, *proxy_);
  service_ =
      std::make_unique<Service>(*this, layout, leadership_, *proxy_, *proposals_, host_.get());
  listeners_ = std::make_unique<Listeners>(layout, *proxy_, host_.get(), supervisor_, *proposals_);
}

void Node::open_checks() {
  dmt::Layout& layout = server_->layout();
  stalls_ = std::make_unique<StallWatch>(layout, config_.replicas, *server_, *proposals_);
  slices_ = std::make_unique<SliceWatch>(loop_.base(), config_, *server_, *proposals_);

  live_check_ = std::make_unique<LiveCheck>(config_, *server_, leadership_, *proposals_, mode_);

  const StartingPoint& start = recovery_->start();
  put_early_points(layout, start.state(), mode_.early_points(config_));
  if (start.at_checkpoint()) {
    const NodeState& s = start.state();
    if (start.restores_processes()) {
      recover_clients(layout, *proxy_);
    } else {
      dmt::continue_from(layout, start.carried());
    }
    proxy_->recover_at(s.clock);
    server_->outputs().restore(s.outputs, {value(s.at.index), s.clock, s.hash});
    stalls_->restore(s.passed, s.clock);
    intake_->begin_behind(s.at.index, s.first_start, s.entries);
    live_check_->restore(s.at.index, s.verified, s.restarted_from);
    leadership_.committed(s.at, static_cast<std::int64_t>(s.stamp_ns), monotonic_ns());
    mode_.begin_behind(s.at.index, s.outputs.hash.open);
  }
  if (mode_.knows_all_stalls(*stalls_, config_.replicas)) stalls_->close();
}

// Requests wait in the socket, or on their links, until the node runs.
void Node::open_control_socket() {
  operator_links_ = std::make_unique<OperatorLinks>(loop_.base(), *this);
  control_socket_ = std::make_unique<ControlSocket>(loop_.base(), *this);
  const std::string path = config_.replica_dir() + "/control.sock";
  const Outcome opened = control_socket_->open(path);
  if (opened.ok()) return;
  spdlog::warn("crane-ctl cannot reach this node: {}: {}", path, opened.error().message());
}

bool Node::open_group() {
  consensus::Options options = consensus_options(config_);
  std::error_code ignored;  // open_log() reports failures that matter
  std::filesystem::create_directories(options.directory, ignored);
  consensus::Callbacks& callbacks = options.callbacks;
  callbacks.on_committed = [this](const consensus::EntryView& e) { on_committed(e); };
  callbacks.on_role = [this](consensus::Role role, View view, ReplicaId leader) {
    leadership_.role(role, view, leader);
    const bool known = value(leader) < config_.replicas;
    spdlog::info("{} in view {}.{}, leader {}", consensus::name(role), view_counter(view),
                 value(view_owner(view)), known ? std::to_string(value(leader)) : "not known");
    supervisor_.role(consensus::name(role), view_counter(view), value(leader));
    if (leadership_.leads() && consensus_ != nullptr) supervisor_.members(*consensus_);
  };
  callbacks.on_message = [this](ReplicaId from, std::span<const std::byte> bytes) {
    on_message(from, bytes);
  };
  callbacks.on_visitor = [this](ReplicaId from, std::unique_ptr<consensus::SecureLink> link) {
    on_visitor(from, std::move(link));
  };
  callbacks.on_members = [this] {
    supervisor_.members(*consensus_);
    if (status_ != nullptr) status_->changed(now_ns_);
  };
  callbacks.on_fatal = [this](const char* why) {
    leadership_.stop_leading();
    const bool removed = consensus_ != nullptr && consensus_->status().removed;
    if (removed) {
      end_.leave_group();
      supervisor_.removed();
    }
    const bool full = consensus_ != nullptr && !consensus_->status().no_room.empty();
    fail(removed ? ExitStatus::kLeftGroup
         : full  ? ExitStatus::kNoRoom
                 : ExitStatus::kLogFailed,
         why);
  };
  auto opened = open_log(config_, mode_, *recovery_, std::move(options), *this);
  if (!opened.ok()) {
    const Error why = log_failure(opened.error(), config_, recovery_->start().at_checkpoint());
    fail(exit_status_of(why), why.text);
    return false;
  }
  consensus_ = std::move(opened).value();
  if (config_.restore || consensus_->status().last != Index{0}) {
    progress_.recovers(static_cast<std::uint64_t>(monotonic_ns()));
  }
  live_check_->opened(*consensus_);
  recovery_->opened(*consensus_);
  open_operators();
  open_http();
  supervisor_.watch(loop_.base(), *this);
  // Ctrl-C reaches the whole group; SIGTERM concerns only this node, so another one should lead.
  loop_.watch_signal(SIGTERM);
  loop_.watch_signal(SIGINT);
  if (recovery_->acceptor_only()) supervisor_.acceptor_only();
  loop_.wake_by(consensus_->event_fd(), false);
  loop_.wake_by(server_->segment().doorbell_fd(), true);
  return true;
}

void Node::open_operators() {
  status_ = std::make_unique<StatusReporter>(StatusSources{
      config_, *consensus_, *server_, *stalls_, *slices_, *live_check_, *intake_, loop_,
      leadership_, progress_, *proxy_, *proposals_, *service_, *recovery_, host_.get()});
  requests_ =
      std::make_unique<OperatorRequests>(config_, *consensus_, leadership_, supervisor_, *this);
}

void Node::open_http() {
  if (config_.http_listen.empty() || !mode_.member()) return;
  http_ = std::make_unique<HttpService>(loop_.base(), config_, *this);
}

}  // namespace crane::node
