// SPDX-License-Identifier: Apache-2.0
// A member of a group: its log is the group's, and no replay observes it.
#include "proxy/host/mode.h"

#include <utility>

#include "proxy/host/recovery/early_points.h"

namespace crane::node {

Result<std::unique_ptr<consensus::Consensus>> NodeMode::open_log(consensus::Options options, Index,
                                                                 const LogReader&) {
  return consensus::Consensus::open(std::move(options));
}

bool NodeMode::knows_all_stalls(StallWatch&, unsigned) { return false; }

std::vector<EarlyPoint> NodeMode::early_points(const Config& config) const {
  return noted_early_points(config);
}
void NodeMode::begin_behind(Index, const std::vector<proxy::OutputStream>&) {}
void NodeMode::before_server(dmt::Layout&) {}
Outcome NodeMode::server_started(pid_t, std::string&) { return Done{}; }
void NodeMode::connected(ConnId, const ConnectBody&) {}
void NodeMode::output(const dmt::Layout&, const OutputHeader&, std::span<const std::byte>) {}
void NodeMode::digest(ReplicaId, const proxy::Digest&, const proxy::Digests&) {}
bool NodeMode::step(std::int64_t, dmt::Layout&, const ServerProgress&) { return false; }
void NodeMode::failed(const std::string&) {}
void NodeMode::stop() {}

}  // namespace crane::node
