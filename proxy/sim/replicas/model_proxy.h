// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients' side of one process of a replica's node: a shell around the production's Clients,
// and the server that answers them.
//
// Threads: one.

#include <cstdint>
#include <memory>

#include "proxy/sim/client_shell.h"
#include "proxy/sim/echo_server.h"
#include "proxy/sim/replicas/model_log.h"

namespace crane::replica::sim {

class ReplicaWorld;

class ModelProxy {
 public:
  // Its server begins after entry `behind`, in the state of `at`; nullptr: without clients.
  ModelProxy(ReplicaWorld& world, proxy::sim::Process process, std::uint64_t behind,
             const proxy::sim::EchoServer* at);
  // The process has ended, perhaps while an action is being carried out.
  void end();

  // The next committed entry, before the server receives it.
  void committed(std::uint64_t index);
  // The server has run the entry.
  void ran(std::uint64_t index);
  // The server's connections end after the entry.
  void end_all(std::uint64_t index);
  const proxy::sim::EchoServer& server() const { return server_; }

  // One moment of a replica that does not serve, or was deposed.
  void follow();
  // One moment of a leader whose server has run its START; if `admits`, new clients may
  // connect.
  void serve(bool admits);
  bool leading() const { return shell_.clients().leading(); }
  bool lacks(const proxy::sim::SimSocket& socket, std::uint64_t closed_at) const {
    return shell_.lacks(socket, closed_at);
  }

 private:
  void run();
  void lead();
  void propose();
  void put_out(std::uint64_t index, const OutputHeader& header, std::span<const std::byte> bytes);

  ReplicaWorld& world_;
  const proxy::sim::Process process_;
  proxy::sim::EchoServer server_;
  proxy::sim::ClientShell shell_;
  bool ended_ = false;
};

}  // namespace crane::replica::sim
