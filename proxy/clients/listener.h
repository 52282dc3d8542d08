// SPDX-License-Identifier: Apache-2.0
#pragma once
// A port of the server: its listening socket on this host, and how many clients the server's
// backlog still takes.
//
// Threads: the node's one thread.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "proxy/clients/client_socket.h"
#include "proxy/clients/encode.h"

namespace crane::proxy {

class Proxy;

// What the own server's backlog takes beyond the entries up to `applied`.
struct BacklogSpace {
  std::uint64_t applied;
  std::uint64_t connections;
};

class Listener {
 public:
  Listener(Proxy& owner, std::uint16_t server_port) noexcept : proxy(&owner), port(server_port) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Takes over `fd`, a listening socket; `on_accept` gets this object.
  void open(int fd, int backlog, event_base* base, event_callback_fn on_accept);
  int fd() const noexcept { return fd_; }  // -1: the server listens, the socket has not come yet
  // At which clients come; the server's is another where it is published elsewhere.
  std::uint16_t host_port() const noexcept { return host_port_; }
  // on_accept is called for clients, and for those that an earlier leader has left.
  void accept_clients(bool on);
  bool accepts() const noexcept { return accepting_; }
  // Clients can connect.
  bool listens() const noexcept;
  // The kernel refuses clients, also those that wait in its queue.
  void close_for_all() noexcept;
  // It takes them again; false, with errno: it does not.
  bool open_again() noexcept;

  // --- the server's backlog; conservative: what is admitted meanwhile is counted twice, so that no
  // CONNECT finds a full queue
  bool has_room(const BacklogSpace& room);
  void taken() noexcept { ++unproposed_; }
  void proposed(std::uint64_t place);

  // --- clients that an earlier leader has accepted, and not proposed
  void leave(ClientSocket socket) { unclaimed_.push_back(std::move(socket)); }
  std::deque<ClientSocket> take_unclaimed() noexcept { return std::exchange(unclaimed_, {}); }
  bool has_unclaimed() const noexcept { return !unclaimed_.empty(); }
  ClientSocket next_unclaimed();

  // The lead is another's.
  void stop() noexcept;

  Proxy* const proxy;
  const std::uint16_t port;     // the server's
  bool server_listens = false;  // there
  bool restarts = false;        // the server is restarted: clients wait in the kernel's queue
  bool full = false;            // the backlog is: who comes waits in the kernel's queue

 private:
  int fd_ = -1;
  int backlog_ = 0;
  std::uint16_t host_port_ = 0;
  bool accepting_ = false;                // the event is armed
  std::size_t unproposed_ = 0;            // clients whose CONNECT has no place in the log yet
  std::deque<std::uint64_t> unadmitted_;  // places of CONNECTs that the own server may not have
  std::deque<ClientSocket> unclaimed_;
  event accept_event_{};
};

// A client that waits at the listening socket `fd`, and its address; -1, with errno: none.
int accept_client(int fd, VirtualAddress& peer) noexcept;

// Either end of a connected or bound socket.
VirtualAddress peer_of(int fd) noexcept;
VirtualAddress local_of(int fd) noexcept;

}  // namespace crane::proxy
