// SPDX-License-Identifier: Apache-2.0
#pragma once
// The listening socket of one of the server's ports on this host.
//
// Threads: the node's one thread.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstdint>
#include <string>

#include "dmt/base/place.h"

namespace crane::proxy {

class Proxy;

class Listener {
 public:
  // Takes over `fd`, a listening socket; `on_accept` gets this object.
  Listener(Proxy& owner, Place server_place, int fd, int backlog, event_base* base,
           event_callback_fn on_accept);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const noexcept { return fd_; }
  // At which clients come; the server's is another where it is published elsewhere.
  std::uint16_t host_port() const noexcept { return host_port_; }
  // on_accept is called while clients wait; `at_once`: also if none does.
  void accept_clients(bool on, bool at_once);
  // Clients can connect.
  bool listens() const noexcept;
  // The kernel refuses clients, also those that wait in its queue.
  void close_for_all() noexcept;
  // It takes them again; false, with errno: it does not.
  bool open_again() noexcept;

  // It is for the clients of a server that listens there.
  bool serves(const Place& at) const noexcept {
    return at.port == port && (at.address.empty() || address.empty() || address == at.address);
  }

  Proxy* const proxy;
  const std::uint16_t port;   // the server's
  const std::string address;  // Place::address
  bool restarts = false;      // the server that listened there is restarted: clients wait

 private:
  const int fd_;
  const int backlog_;
  const std::uint16_t host_port_;
  bool accepting_ = false;  // the event is armed
  event accept_event_{};
};

}  // namespace crane::proxy
