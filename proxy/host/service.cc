// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/service.h"

#include <spdlog/spdlog.h>

#include "dmt/base/clock.h"
#include "proxy/host/recovered_clients.h"

namespace crane::node {

namespace decided = replica::service;

void Service::follow_role(Index applied, bool is_active, bool stopping, std::int64_t now_ns) {
  applied_ = applied;
  now_ns_ = now_ns;
  decided::Round round;
  round.deposed = leadership_.take_deposed();
  round.changed = leadership_.take_changed();
  round.stopping = stopping;
  round.is_active = is_active;
  round.leads = leadership_.leads();
  round.started = leadership_.started();
  round.serves = proxy_.leading();
  step(round);
}

void Service::look_at_quorum(const consensus::QuorumStatus& quorum, std::int64_t now_ns) {
  now_ns_ = now_ns;
  step(decided::Quorum{quorum});
}

void Service::step(const decided::Event& event) {
  machine_.step(event, now_ns_);
  loop_.run(machine_, [this](auto& action) { carry_out(action); });
}

std::string Service::why_not_served() const {
  using Supervisor = decided::Service::Supervisor;
  return machine_.why_not_served(host_ != nullptr ? Supervisor::kHosts
                                 : !supervised()  ? Supervisor::kNone
                                 : attended()     ? Supervisor::kHere
                                                  : Supervisor::kStopped);
}

// --- actions ------------------------------------------------------------------------------------

void Service::carry_out(const decided::StopServing&) {
  layout_.scheduler.leading.store(0, std::memory_order_relaxed);
  proxy_.lead(false);
  if (host_ != nullptr) host_->release_address();
  proposals_.pause();
}

void Service::carry_out(const decided::FollowRole& follow) {
  if (host_ != nullptr) host_->follow(follow.refuses);
}

void Service::carry_out(const decided::BecomeWriter&) {
  decided::Writer writer;
  writer.ours = proxy_.leading() || proxy_.may_lead(leadership_.view(), now_ns_);
  writer.started = leadership_.started();
  writer.admitted = leadership_.admitted(applied_);
  writer.serves = proxy_.leading();
  step(writer);
}

void Service::carry_out(const decided::ProposeStart&) {
  const bool ok = proposals_.start(now_ns_);
  if (ok) owner_.reign_began();
  step(decided::StartProposed{ok});
}

void Service::carry_out(const decided::Serve&) {
  // Up to START, this server's output equals the output of earlier leaders' servers.
  owner_.drain_server();
  const std::int64_t began_ns = monotonic_ns();
  // The address comes before the clients' sockets, which are bound to it.
  const auto reign = static_cast<std::uint32_t>(view_counter(leadership_.view()));
  if (host_ != nullptr) host_->take_address(reign);
  proxy_.lead(true, reign);
  if (proxy_.shares()) reset_lost_clients(layout_, proxy_);
  const proxy::ProxyCounters& clients = proxy_.counters();
  if (clients.last_adopted + clients.last_reset == 0) return;
  spdlog::info("connections: {} adopted, {} reset, in {:.1f} ms", clients.last_adopted,
               clients.last_reset, static_cast<double>(monotonic_ns() - began_ns) / 1e6);
}

void Service::carry_out(const decided::Refuse& refuse) {
  if (host_ != nullptr) host_->refuse(refuse.on);
}

void Service::carry_out(const decided::ReportQuorum& quorum) {
  if (quorum.lost) return spdlog::error("{}", why_not_served());
  spdlog::info("a majority of the replicas answers and has a leader: clients are {}",
               host_ != nullptr ? "accepted again" : "served again");
}

}  // namespace crane::node
