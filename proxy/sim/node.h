// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica of a simulated group, above its core: the server, the connections of clients, and
// their change from leader to leader.
//
// The decisions about clients are those of Clients, the production code, with its Connections, the
// ConnectionTable and the WriterRight.  Proxy (proxy/clients/proxy.h) runs it in an event loop;
// this class runs it in turns of random order: accept, read, write, propose, drop.  Between any two
// of them, after each action of Clients, and inside each call that changes a socket, the process
// may be stopped or killed.  client_shell.h contains what this class shares with worlds of whole
// replicas.
//
// Threads: one.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "consensus/core/step.h"
#include "proxy/clients/connection_table.h"
#include "proxy/clients/writer_right.h"
#include "proxy/sim/client_shell.h"
#include "proxy/sim/echo_server.h"
#include "proxy/sim/kernel.h"

namespace crane::proxy::sim {

class Group;

class Node {
 public:
  Node(Group& group, unsigned id);
  ~Node() { ended(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // As consensus::sim::Application.
  void started();
  void ended();
  void resumed();
  void delivered(const consensus::core::Entry& entry);
  void leads(View view, bool on);

  // A client's socket has changed: plans a turn if there is something to do.
  void look();
  Process process() const { return process_; }
  bool serves() const { return shell_ && shell_->clients().leading(); }
  bool lacks(const SimSocket& socket, std::uint64_t closed_at) const {
    return shell_ && shell_->lacks(socket, closed_at);
  }

 private:
  // --- the log and the server
  void restore_at(std::uint64_t index);
  void plan_server();
  void run_server();
  void output(const OutputHeader& header, std::span<const std::byte> bytes);

  // --- turns of the leader
  void wake(std::uint64_t delay_ns);
  void turn();
  bool serve_clients();
  bool accept_one();
  bool propose();

  // --- changes of the leader
  void try_to_lead();
  bool propose_start();
  void take_over();
  void step_down();
  void prune_followed();

  // Carries out the actions of Clients until the process is stopped.
  void run();
  bool inside() const;
  Result<Index> propose_entry(EntryType type, GrantTurns grant, std::span<const std::byte> body);

  Group& group_;
  const unsigned id_;
  Process process_{};
  bool runs_ = false;
  std::unique_ptr<ConnectionTable> table_;
  std::optional<WriterRight> right_;
  std::optional<ClientShell> shell_;
  bool releases_right_ = false;  // after the actions of Clients
  View view_{};                  // the view in which it leads or has led
  bool leads_ = false;           // consensus has made it the leader
  std::uint64_t start_ = 0;      // index of this reign's START, once proposed
  bool turn_planned_ = false;

  EchoServer server_;
  bool restored_ = false;             // the server is where the log continues
  std::deque<std::uint64_t> inputs_;  // indexes that the server has yet to admit
  std::uint64_t admitted_ = 0;
  bool server_planned_ = false;
};

}  // namespace crane::proxy::sim
