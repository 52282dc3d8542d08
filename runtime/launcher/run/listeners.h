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
    std::string address;  // Place::address, of this machine
    std::uint16_t published;
    bool serves;  // false: the server is bound to it, and has not listened there
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

  // Whether clients are to reach the server's `port`.
  bool publishes(std::uint16_t port) const {
    return setup::published_port(publish_, port).has_value();
  }
  // Clients do not reach the server there; true: that was not so when it was asked for last.
  bool unreached(const Place& place) { return unreached_.insert(place).second; }
  // REQUIRES: publishes(place.port).  The name of the socket that takes the clients of that place.
  // Where --publish names an address it is one for all places of the port.
  Place key_of(const Place& place) const;
  // REQUIRES: publishes(place.port).  The socket for that place; it is opened at the first request.
  // Status kPortTaken, and in `fd` minus the errno.  `fresh`: it takes clients from now on.
  Outcome open(const Request& request, int& fd, bool& fresh);
  // A socket of ours at the same port has its clients, until the leader's node closes it.
  bool waits_for_own(const Place& place) const;
  // Of a group that is taken over: the socket that its nodes have; ours now.
  void adopt(const Place& place, int fd);
  const std::map<Place, Socket>& sockets() const { return sockets_; }

 private:
  Outcome refused(const Request& request, int error, int& fd) const;

  setup::Ports publish_;
  std::map<Place, Socket> sockets_;  // by where the server listens
  std::set<Place> unreached_;
};

}  // namespace crane::launcher
