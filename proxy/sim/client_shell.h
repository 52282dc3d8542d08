// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the shells around Clients have in common, those of --connections (node.h) and of worlds of
// whole replicas (replicas/model_proxy.h): sockets that ring, and what Clients asks for.
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
    bool releases_early = false;  // TABLE-1 is removed
    unsigned skipped = 0;         // of a thousand things to do, left for the next turn
  };
  // `slots`: of nodes that share their sockets; nullptr: they do not.  All outlive the object.
  ClientShell(const Rules& rules, Kernel& kernel, Process process, ConnectionSlots* slots,
              consensus::sim::Random& random);
  // Nothing is closed: the keeper has the same descriptors.
  ~ClientShell();
  ClientShell(const ClientShell&) = delete;
  ClientShell& operator=(const ClientShell&) = delete;

  Clients& clients() { return clients_; }
  const Clients& clients() const { return clients_; }
  // Carries out the next thing that Clients asks for; false: there is none.
  bool next();

  // The next client, if one waits.  What comes of it is in next().
  struct Turn {
    bool waits = false;  // there is something to do: now, or it was left for the next turn
    bool done = false;
  };
  Turn accept();
  std::vector<int> watched() const;
  // That socket, if it has changed since it rang last.
  Turn ring(int fd);
  // Every socket rings again.
  void ring_all();

  // Its server begins behind that entry, as `server` was there.
  void restore(const EchoServer& server, std::uint64_t index);
  // Whether it has begun too late to go on with the socket, whose connection the server has closed
  // at `closed_at`; 0: it has not.
  bool lacks(const SimSocket& socket, std::uint64_t closed_at) const;
  // Another process has collected what this one held.
  void let_go_if_released();
  // The leader's: with what earlier ones held, where nodes share their sockets.
  void take_over();

 private:
  // A socket that rings when it changes, as epoll's edges.
  struct Watch {
    Client* client = nullptr;
    std::optional<std::uint64_t> input, output;  // as of the last ring; none: it rings at once
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
  // All that comes is accepted, and no message is for anyone here.
  template <typename Other>
  void carry_out(const Other&) {}

  const Rules rules_;
  Kernel& kernel_;
  const Process process_;
  ConnectionSlots* const slots_;
  consensus::sim::Random& random_;
  Clients clients_;
  ClientActionList actions_;      // being carried out
  std::size_t next_ = 0;          // .. from here on
  std::map<int, Watch> watches_;  // by descriptor
  std::optional<std::uint64_t> restored_at_;
  std::map<SocketId, std::uint64_t> restored_written_;
};

}  // namespace crane::proxy::sim
