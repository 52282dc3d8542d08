// SPDX-License-Identifier: Apache-2.0
#pragma once
// The common part of the shells around Clients, for --connections (node.h) and for worlds of whole
// replicas (replicas/model_proxy.h): sockets with events, and the actions of Clients.
//
// Threads: one.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "consensus/sim/world.h"
#include "proxy/replica/clients/clients.h"
#include "proxy/sim/echo_server.h"
#include "proxy/sim/kernel.h"

namespace crane::proxy::sim {

class ClientShell {
 public:
  struct Rules {
    ClientOptions options;
    ClientMutant mutant = ClientMutant::kNone;
    bool releases_early = false;  // true: without TABLE-1
    unsigned skipped = 0;         // per thousand things to do, left for the next turn
  };
  // `slots`: for nodes that share their sockets; nullptr: they do not.  All arguments outlive the
  // object.
  ClientShell(const Rules& rules, Kernel& kernel, Process process, ConnectionSlots* slots,
              consensus::sim::Random& random);
  // Closes nothing: the keeper has the same descriptors.
  ~ClientShell();
  ClientShell(const ClientShell&) = delete;
  ClientShell& operator=(const ClientShell&) = delete;

  Clients& clients() { return clients_; }
  const Clients& clients() const { return clients_; }
  // Carries out the next action of Clients; false: there is none.
  bool next();

  // Accepts the next client, if one waits.  next() carries out what follows.
  struct Turn {
    bool waits = false;  // there is something to do, now or in the next turn
    bool done = false;
  };
  Turn accept();
  std::vector<int> watched() const;
  // Delivers the events of that socket, if it has changed since the last time.
  Turn ring(int fd);
  // Delivers the events of every socket again.
  void ring_all();

  // Its server begins after entry `index`, in the state of `server`.
  void restore(const EchoServer& server, std::uint64_t index);
  // Whether it began too late to continue with the socket, whose connection the server has closed
  // at `closed_at`; 0: the connection is open.
  bool lacks(const SimSocket& socket, std::uint64_t closed_at) const;
  // Releases the sockets that another process has adopted.
  void close_if_released();
  // Becomes the leader's shell; with the sockets of earlier leaders, if nodes share them.
  void take_over();

 private:
  // A socket with events when it changes, like epoll's edges.
  struct Watch {
    Client* client = nullptr;
    // As of the last event; none: the next event comes at once.
    std::optional<std::uint64_t> input, output;
    bool writing = false;
  };

  bool skips() { return rules_.skipped != 0 && random_.chance(rules_.skipped); }
  void take(ClientSocket socket);
  bool take_actions();
  void carry_out(client_actions::Close& action) { action.socket.close(); }
  void carry_out(const client_actions::SetPut& a) { slots_->set_put(a.slot, a.put); }
  void carry_out(const client_actions::SetLogged& a) { slots_->set_logged(a.slot, a.socket); }
  void carry_out(const client_actions::Release& a) { slots_->release(a.slot); }
  void carry_out(const client_actions::KeepOnly& a) { slots_->keep_only(a.slots); }
  void carry_out(const client_actions::Watch& a) { watches_[a.fd] = {a.client, {}, {}, false}; }
  void carry_out(const client_actions::WatchWriting& a);
  void carry_out(const client_actions::Unwatch& a) { watches_.erase(a.fd); }
  // Every client is accepted, and messages have no recipient.
  template <typename Other>
  void carry_out(const Other&) {}

  const Rules rules_;
  Kernel& kernel_;
  const Process process_;
  ConnectionSlots* const slots_;
  consensus::sim::Random& random_;
  Clients clients_;
  ClientActionList actions_;      // the actions that are being carried out
  std::size_t next_ = 0;          // the first of them that is left
  std::map<int, Watch> watches_;  // by descriptor
  std::optional<std::uint64_t> restored_at_;
  std::map<SocketId, std::uint64_t> restored_written_;
};

}  // namespace crane::proxy::sim
