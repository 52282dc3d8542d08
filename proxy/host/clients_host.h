// SPDX-License-Identifier: Apache-2.0
#pragma once
// Answers the proxy's questions from the server's segment and the group's configuration.
//
// Threads: the node's one thread.

#include <string_view>

#include "proxy/clients/proxy.h"
#include "proxy/host/config.h"
#include "proxy/host/replica_server.h"
#include "runtime/setup/outbound.h"

namespace crane::node {

class ClientsHost final : public proxy::ProxyHost {
 public:
  // Both arguments must outlive it.
  ClientsHost(const Config& config, ReplicaServer& server);

  void woke() override { server_.node_awake(); }
  proxy::BacklogSpace space_of(std::uint16_t port) override;
  bool allows(const crane::VirtualAddress& to) override { return outbound_.allows(to); }
  // Looks in the innermost bound directory that holds `path`, as the server sees the path.
  proxy::HostPath find_socket(std::string_view path) override;

 private:
  const Config& config_;
  ReplicaServer& server_;
  const setup::Outbound outbound_;
};

}  // namespace crane::node
