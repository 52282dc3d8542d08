// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/clients_host.h"

#include <string>

#include "dmt/base/path_below.h"
#include "proxy/host/backlog_room.h"

namespace crane::node {

ClientsHost::ClientsHost(const Config& config, ReplicaServer& server)
    : config_(config),
      server_(server),
      outbound_(setup::parse_outbound(config.outbound).value_or(setup::Outbound{})) {}

proxy::BacklogSpace ClientsHost::space_of(std::uint16_t port) {
  return backlog_room(server_.layout(), port);
}

proxy::HostPath ClientsHost::find_socket(std::string_view path) {
  proxy::HostPath found;
  std::size_t longest = 0;
  for (const setup::Bind& bind : config_.binds) {
    const std::string_view below = path_below(bind.target, path);
    if (below.empty() || bind.target.size() <= longest) continue;
    longest = bind.target.size();
    found = {bind.source, std::string(below)};
  }
  return found;
}

}  // namespace crane::node
