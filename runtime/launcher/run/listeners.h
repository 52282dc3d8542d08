// SPDX-License-Identifier: Apache-2.0
#pragma once
// The real listening sockets of a group. crane-run opens each once and hands the same socket to
// every node; only the leader accepts from it, so a leader change never loses the port.
//
// Threads: one.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "dmt/base/place.h"
#include "runtime/setup/listen.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/publish.h"

namespace crane::launcher {

class Listeners {
 public:
  struct Socket {
    int fd;
    std::string address;  // Place::address on this machine
    std::uint16_t published;
    bool serves;  // false: the server is bound to the port, but does not listen yet
  };
  struct Request {
    Place place;  // where the server listens
    int backlog;
    bool for_bind;
  };

  explicit Listeners(setup::Ports publish) : publish_(std::move(publish)) {}
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  // Whether clients may reach the server's `port`.
  bool publishes(std::uint16_t port) const {
    return setup::published_port(publish_, port).has_value();
  }
  // Notes that clients do not reach the server at `place`.  True: this is new.
  bool unreached(const Place& place) { return unreached_.insert(place).second; }
  // The key of the socket that accepts the clients of `place`.  All places of a port share one key
  // if --publish names an address for the port.
  // REQUIRES: publishes(place.port).
  Place key_of(const Place& place) const;
  // Sets `fd` to the socket for the place, which the first request opens.  Sets `fresh` if the
  // socket accepts clients from now on.  Fails with kPortTaken; `fd` is then minus the errno.
  // REQUIRES: publishes(place.port).
  Outcome open(const Request& request, int& fd, bool& fresh);
  // Whether another socket of the group occupies the place until the leader's node closes it.
  bool waits_for_own(const Place& place) const;
  // Takes ownership of a socket that a node of a taken-over group handed over.
  void adopt(const Place& place, int fd);
  const std::map<Place, Socket>& sockets() const { return sockets_; }

 private:
  Outcome refused(const Request& request, int error, int& fd) const;

  setup::Ports publish_;
  std::map<Place, Socket> sockets_;  // by key_of() the server's place
  std::set<Place> unreached_;
};

}  // namespace crane::launcher
