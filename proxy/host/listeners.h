// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where clients reach the server's ports on this machine: the host's own listeners, or those that
// crane-run opens; and binds of the server that wait to know whether their port is free there
// (port_questions.h).
//
// Threads: the node's one thread.
// INVARIANT LISTEN-1  Each port at which the server listens is asked for until a listener is there:
//                     again by each crane-run that takes this node over.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "proxy/clients/server.h"
#include "proxy/host/host_role.h"
#include "proxy/host/port_questions.h"
#include "proxy/host/supervisor.h"

namespace crane::node {

class Listeners {
 public:
  // Proposes PORT; false: not now.
  using Propose = std::function<bool(const PortBody& body)>;

  // `host`: nullptr when a crane-run has started this node.  All outlive it.
  Listeners(dmt::Layout& layout, proxy::Proxy& proxy, HostRole* host, Supervisor& supervisor,
            Propose propose);

  // The server listens there.
  void open(std::uint16_t port, std::uint64_t backlog);
  // At all ports: a new crane-run is there, or (`tell_proxy`) the server comes from a checkpoint.
  void open_all(bool tell_proxy);

  // --- binds that wait
  void wanted(std::uint16_t port, std::uint64_t question) { questions_.wanted(port, question); }
  // No listener for a port that was asked for: errno, or 0 when clients are not to reach it.
  void settled(std::uint16_t port, int error) { questions_.settled(port, error); }
  // The crane-run that was asked is gone.
  void ask_again() { questions_.ask_again(); }
  // The server comes from a checkpoint.  REQUIRES the turn.
  void recover() { questions_.recover(); }
  // `leads`: this replica may answer for the group.
  void step(bool leads) { questions_.step(leads); }

 private:
  std::optional<int> open_for_bind(std::uint16_t port);

  dmt::Layout& layout_;
  proxy::Proxy& proxy_;
  HostRole* const host_;
  Supervisor& supervisor_;
  PortQuestions questions_;
};

}  // namespace crane::node
