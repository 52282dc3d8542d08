// SPDX-License-Identifier: Apache-2.0
// The node by itself, one per host: what crane-run does for the nodes of one machine, and what a
// follower's host does for clients that come to it.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "proxy/node/node.h"
#include "runtime/setup/listen.h"

namespace crane::node {
namespace {

std::uint16_t published(const setup::Ports& publish, std::uint16_t port) {
  const auto found =
      std::find_if(publish.begin(), publish.end(), [&](const auto& p) { return p.second == port; });
  return found == publish.end() ? port : found->first;
}

}  // namespace

void Node::open_host() {
  open_shipping();
  forwarder_ = std::make_unique<Forwarder>(loop_.base(), [this] { awake(); });
  role_hook_ = std::make_unique<RoleHook>(loop_.base(), config_.host->role_change);
  proxy_->set_strangers([this](int fd, std::uint16_t port, const std::string& peer) {
    take_stranger(fd, port, peer);
  });
}

void Node::set_host_options(consensus::Options& options) const {
  const setup::GroupFile& f = *config_.host;
  options.fabric = f.fabric == "tcp"     ? consensus::FabricKind::kTcp
                   : f.fabric == "verbs" ? consensus::FabricKind::kVerbs
                                         : consensus::FabricKind::kShm;
  for (const setup::HostReplica& r : f.replicas) options.endpoints.push_back({r.address, r.port});
  options.secret = config_.links;
  options.device = f.device;
  for (const auto fence : {consensus::Fence::kAccessFlags, consensus::Fence::kQueuePairReset}) {
    if (f.fence == consensus::name(fence)) options.fence = fence;
  }
  options.fence_flags_devices = f.fence_flags_devices;
  for (const auto pages : {consensus::HugePages::kRequire, consensus::HugePages::kNever}) {
    if (f.huge_pages == consensus::name(pages)) options.huge_pages = pages;
  }
  options.members = f.members;
  options.ring_bytes = std::uint64_t{f.ring_mb} << 20;
}

// Errno, or 0: clients reach the server's `port` on this host now.
int Node::try_own_listener(std::uint16_t port, std::uint64_t backlog) {
  const std::uint16_t ours = published(config_.host->publish, port);
  const std::string where =
      config_.host->listen_any ? "" : config_.host->replicas[config_.replica].clients;
  const int length = static_cast<int>(std::min<std::uint64_t>(backlog, 65535));
  const auto fd = setup::listen_on(where, ours, length);
  if (!fd.ok()) return fd.error().detail;
  spdlog::info("port {} of the server is port {} of this host", port, ours);
  proxy_->add_listener(port, fd.value(), length);
  host_ports_.emplace_back(port, ours);
  return 0;
}

void Node::open_own_listener(std::uint16_t port, std::uint64_t backlog) {
  const int error = try_own_listener(port, backlog);
  if (error == 0) return;
  const std::uint16_t ours = published(config_.host->publish, port);
  if (intake_->inputs_of_clients() != 0 && !host_ports_.empty()) {
    // The leader's host has it: what a client made the server do ends no replica.
    spdlog::error("cannot listen on port {}: {}; the server listens there in vain on this host",
                  ours, std::strerror(error));
    return;
  }
  fail(ExitStatus::kNoListener,
       fmt::format("cannot listen on port {}: {}; stop its owner, or publish the server's port "
                   "elsewhere ([clients] publish = [\"OTHER:{}\"])",
                   ours, std::strerror(error), port));
}

bool Node::open_virtual_address() {
  const setup::GroupFile& f = *config_.host;
  if (f.virtual_ip.empty()) return true;
  const Outcome opened = virtual_address_.open(f.virtual_ip, f.interface);
  if (opened.ok()) return true;
  fail(ExitStatus::kNoListener,
       fmt::format("cannot use the virtual address {} on {}: {}; mend [clients] virtual_ip and "
                   "interface",
                   f.virtual_ip, f.interface, opened.error().what));
  return false;
}

// Without it clients of the address are not served, but all others are: say it, and go on.
void Node::take_virtual_address() {
  if (!virtual_address_.configured()) return;
  const Outcome taken = virtual_address_.take();
  if (taken.ok()) {
    spdlog::info("{} is on {} of this host now", config_.host->virtual_ip, config_.host->interface);
    return;
  }
  spdlog::error("cannot move {} to {}: {}: {}; run the node as root, or leave virtual_ip out",
                config_.host->virtual_ip, config_.host->interface, taken.error().what,
                std::strerror(taken.error().detail));
}

// A replica that can serve nobody says so to its clients at once, and to its operator.
void Node::look_at_quorum() {
  if (!mode_.member() || end_.stopping()) return;
  const QuorumWatch::Change change = quorum_.step(consensus_->quorum(), now_ns_);
  if (change == QuorumWatch::Change::kNone) return;
  const bool lost = change == QuorumWatch::Change::kLost;
  if (lost) {
    spdlog::error("{}", quorum_.text());
  } else {
    spdlog::info("a majority of the replicas answers and has a leader: clients are taken again");
  }
  if (config_.host) {
    proxy_->refuse(lost);
    pass_clients_on();
  }
  report_status();
}

// Where clients go that come to this host while it follows.
void Node::pass_clients_on() {
  const bool follows = leadership_.role() == consensus::Role::kFollower ||
                       leadership_.role() == consensus::Role::kLearner;
  const bool named = value(leadership_.leader()) < config_.replicas;
  const bool known =
      follows && named && value(leadership_.leader()) != config_.replica && !quorum_.refuses();
  const bool forward = known && config_.host->forward;
  // While nobody is known to lead, those who were passed on stay: if the same one leads on, nothing
  // happened to them; if it led no more, it has reset them itself.
  if (named || !follows || quorum_.refuses()) {
    forwarder_->set_target(forward ? config_.host->replicas[value(leadership_.leader())].clients
                                   : "");
  }
  // While nobody is known to lead, clients wait in the kernel.
  if (!leadership_.leads()) proxy_->take_strangers(known);
}

// Whose clients come here, after the role or the leader changed.
void Node::follow_leader() {
  const bool named = value(leadership_.leader()) < config_.replicas;
  pass_clients_on();
  role_hook_->changed(
      {"CRANE_GROUP=" + config_.group, fmt::format("CRANE_REPLICA={}", config_.replica),
       fmt::format("CRANE_ROLE={}", consensus::name(leadership_.role())),
       fmt::format("CRANE_VIEW={}", view_counter(leadership_.view())),
       named ? fmt::format("CRANE_LEADER={}", value(leadership_.leader())) : "CRANE_LEADER="});
}

// The group does not miss a replica that was removed, but clients came through its host: they stay
// with the leader until they leave, or the operator stops the node.
void Node::pass_on_the_rest() {
  if (!removed_ || forwarder_ == nullptr || forwarder_->connections() == 0) return;
  control_socket_.reset();
  loop_.stop_waking();
  proxy_.reset();      // nobody new: the ports are closed
  consensus_.reset();  // the members see this replica gone
  spdlog::info("{} clients are passed on until they leave; SIGTERM ends that",
               forwarder_->connections());
  end_.resume();
  while (!end_.done() && !end_.stopping() && forwarder_->connections() > 0) {
    loop_.wait();
  }
}

void Node::take_stranger(int fd, std::uint16_t port, const std::string& peer) {
  const std::uint16_t ours = published(config_.host->publish, port);
  if (config_.host->forward) return forwarder_->take(fd, ours, peer);
  spdlog::info("client {} was refused: replica {} leads, at {}:{}", peer,
               value(leadership_.leader()),
               config_.host->replicas[value(leadership_.leader())].clients, ours);
  reset_socket(fd);
}

void Node::disagree(const char* what, unsigned leader) {
  if (!config_.host) {  // one crane-run has started all: it is the log that is of another start
    return fail(ExitStatus::kDisagrees,
                fmt::format("replica {}: {} changed since the group's log was written; start it "
                            "as before to go on with that log, or remove the group's directory to "
                            "begin anew with the machine's files",
                            config_.replica, what));
  }
  if (leader == config_.replica) {  // what it reads is its own word, of an earlier start
    return fail(
        ExitStatus::kDisagrees,
        fmt::format("replica {}: {} changed since this replica led the group, as its log "
                    "tells; start it as before to go on with that log, or begin anew on all "
                    "hosts at once with --force-new-group, which gives it up",
                    config_.replica, what));
  }
  fail(ExitStatus::kDisagrees,
       fmt::format("replica {} is configured otherwise than replica {}, which leads: {} differs; "
                   "make it equal on all hosts and start this replica again",
                   config_.replica, leader, what));
}

}  // namespace crane::node
