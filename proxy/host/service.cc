// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/service.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "dmt/base/clock.h"

namespace crane::node {

void Service::be_deposed() {
  collects_at_ns_ = proxy::kNever;
  layout_.scheduler.leading.store(0, std::memory_order_relaxed);
  proxy_.lead(false);  // SERVE-1
  if (host_ != nullptr) host_->give_up_address();
  proposals_.pause();
  actions_.changed();
}

void Service::follow_role(Index applied, bool goes_on, bool stopping, std::int64_t now_ns) {
  const bool changed = leadership_.take_changed();
  if (leadership_.take_deposed()) be_deposed();
  if (changed) {
    if (host_ != nullptr) host_->follow(quorum_.lost());
    actions_.changed();
  }
  if (stopping && proxy_.leading()) proxy_.end();
  if (!leadership_.leads() || !goes_on) return;
  // An earlier leader of this host ends while START is agreed on.
  const bool may_lead = proxy_.leading() || proxy_.may_lead(leadership_.view(), now_ns);
  if (!leadership_.started() && proposals_.start(now_ns)) {
    actions_.started();
    collects_at_ns_ = now_ns;  // when the own server has got START, which takes it a while
  } else if (may_lead && collects_at_ns_ != proxy::kNever) {
    proxy_.collect();
    collects_at_ns_ = proxy::kNever;
  }
  if (!leadership_.admitted(applied) || proxy_.leading() || !may_lead) return;  // LEAD-2
  actions_.drain();  // up to START: what an earlier leader's server has written, this one's has
  const std::int64_t began_ns = monotonic_ns();
  // Before the clients' sockets are made, which are at the address.
  const auto reign = static_cast<std::uint32_t>(view_counter(leadership_.view()));
  if (host_ != nullptr) host_->take_address(reign);
  proxy_.lead(true, reign);
  if (proxy_.shares()) actions_.took_over();
  const proxy::ProxyCounters& clients = proxy_.counters();
  if (clients.last_adopted + clients.last_reset > 0) {
    spdlog::info("connections: {} adopted, {} reset, in {:.1f} ms", clients.last_adopted,
                 clients.last_reset, static_cast<double>(monotonic_ns() - began_ns) / 1e6);
  }
  actions_.changed();
}

void Service::look_at_quorum(const consensus::QuorumStatus& quorum, std::int64_t now_ns) {
  if (std::exchange(answering_, quorum.answering) != quorum.answering) actions_.changed();
  const replica::QuorumWatch::Change change = quorum_.step(quorum, now_ns);
  if (change == replica::QuorumWatch::Change::kNone) return;
  if (change == replica::QuorumWatch::Change::kLost) {
    spdlog::error("{}", why_not_served());
  } else {
    spdlog::info("a majority of the replicas answers and has a leader: clients {}",
                 host_ != nullptr ? "are taken again" : "go on");
  }
  if (host_ != nullptr) host_->refuse(quorum_.lost());
  actions_.changed();
}

// On one host there is nowhere else to go, and clients that wait go on at the very byte.
std::string Service::why_not_served() const {
  if (host_ != nullptr) return quorum_.text("clients are refused");
  if (quorum_.majority()) return quorum_.text("clients wait");
  return quorum_.text(actions_.supervised()
                          ? "clients wait until crane-run has brought the others back"
                          : "clients wait until crane-run is started again with the same command");
}

}  // namespace crane::node
