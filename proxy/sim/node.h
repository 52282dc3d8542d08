// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica of a simulated group, above its core: the server, the connections of clients, and
// their change from leader to leader.
//
// What it decides about clients is Clients, the production code, with its Connections, the
// ConnectionTable and the WriterRight.  What Proxy (proxy/clients/server.h) does in an event loop
// is done here in turns of random order: accept, read, write, propose, drop.  Between any two of
// them, behind each action of Clients, and inside each call that changes a socket, the process may
// be stopped or killed.
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
#include "proxy/replica/clients/clients.h"
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

  // A client's socket has changed: it looks what there is to do.
  void look();
  Process process() const { return process_; }
  bool serves() const { return clients_ && clients_->leading(); }
  std::size_t connections() const { return clients_ ? clients_->size() : 0; }
  // Whether this process has recovered at a place that is too late to go on with the socket, whose
  // connection the server has closed at `closed_at`; 0: it has not.
  bool lacks(const SimSocket& socket, std::uint64_t closed_at) const;

 private:
  // A socket that rings when it changes, as epoll's edges.
  struct Watch {
    Client* client = nullptr;
    std::optional<std::uint64_t> input, output;  // as of the last ring; none: it rings at once
    bool writing = false;
  };

  // --- the log and the server
  void restore_at(std::uint64_t index);
  void plan_server();
  void run_server();
  void output(const OutputHeader& header, std::span<const std::byte> bytes);

  // --- turns of the leader
  void wake(std::uint64_t delay_ns);
  void turn();
  bool serve_clients();
  bool ring(int fd);
  bool accept_one();
  void take_client(ClientSocket socket);
  bool propose();

  // --- changes of the leader
  void try_to_lead();
  bool propose_start();
  void take_over();
  void step_down();
  void tend();
  void let_go_if_released();

  // Carries out what Clients asks for, as far as the process is not stopped meanwhile.
  void run();
  bool take_actions();
  void carry_out(client_actions::Close& action) { action.socket.close(); }
  void carry_out(const client_actions::SetPut& a) { table_->set_put(a.slot, a.put); }
  void carry_out(const client_actions::SetLogged& a) { table_->set_logged(a.slot, a.socket); }
  void carry_out(const client_actions::Release& a) { table_->release(a.slot); }
  void carry_out(const client_actions::KeepOnly& a) { table_->keep_only(a.slots); }
  void carry_out(const client_actions::Watch& a) { watches_[a.fd] = {a.client, {}, {}, false}; }
  void carry_out(const client_actions::WatchWriting& a);
  void carry_out(const client_actions::Unwatch& a) { watches_.erase(a.fd); }
  // All that comes is accepted, and no message is for anyone here.
  template <typename Other>
  void carry_out(const Other&) {}

  bool inside() const;
  Result<Index> propose_entry(EntryType type, GrantTurns grant, std::span<const std::byte> body);

  Group& group_;
  const unsigned id_;
  Process process_{};
  bool runs_ = false;
  std::unique_ptr<ConnectionTable> table_;
  std::optional<WriterRight> right_;
  std::optional<Clients> clients_;
  ClientActionList actions_;      // being carried out
  std::size_t next_ = 0;          // .. from here on
  bool gives_right_up_ = false;   // behind them
  std::map<int, Watch> watches_;  // by descriptor
  View view_{};                   // in which it leads, or has led
  bool leads_ = false;            // the log
  std::uint64_t start_ = 0;       // index of this reign's START, once proposed
  bool turn_planned_ = false;

  EchoServer server_;
  std::optional<std::uint64_t> restored_at_;  // where this process has begun in the log
  std::map<SocketId, std::uint64_t> restored_written_;
  std::deque<std::uint64_t> inputs_;  // indexes that the server has yet to admit
  std::uint64_t admitted_ = 0;
  bool server_planned_ = false;
};

}  // namespace crane::proxy::sim
