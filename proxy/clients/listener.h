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
  // Takes over `fd`, a listening socket; `on_accept` receives this object.
  Listener(Proxy& owner, Place server_place, int fd, int backlog, event_base* base,
           event_callback_fn on_accept);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const noexcept { return fd_; }
  // Where clients connect; the server's port differs if it is published elsewhere.
  std::uint16_t host_port() const noexcept { return host_port_; }
  // on_accept is called while clients wait; with `at_once`, also once if no client waits.
  void accept_clients(bool on, bool at_once);
  // Clients can connect.
  bool listens() const noexcept;
  // The kernel refuses clients, including those that wait in its queue.
  void close_for_all() noexcept;
  // Clients can connect again; false, with errno: they cannot.
  bool open_again() noexcept;

  // The listener is for the clients of a server that listens at `at`.
  bool serves(const Place& at) const noexcept {
    return at.port == port && (at.address.empty() || address.empty() || address == at.address);
  }

  Proxy* const proxy;
  const std::uint16_t port;   // the server's port
  const std::string address;  // Place::address
  bool restarts = false;      // the server that listened there is being restarted: clients wait

 private:
  const int fd_;
  const int backlog_;
  const std::uint16_t host_port_;
  bool accepting_ = false;  // the event is armed
  event accept_event_{};
};

}  // namespace crane::proxy
