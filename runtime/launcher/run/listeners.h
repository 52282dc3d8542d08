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

#include "runtime/setup/listen.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/publish.h"

namespace crane::launcher {

class Listeners {
 public:
  struct Socket {
    int fd;
    std::string address;
    std::uint16_t published;
    bool serves;  // false: the server is bound to it, and has not listened there
  };
  struct Request {
    std::uint16_t port;  // the server's
    std::string address;
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
  // Clients do not reach the server's `port`; true: that was not so when it was asked for last.
  bool unreached(std::uint16_t port) { return unreached_.insert(port).second; }
  // REQUIRES: publishes(port).  The socket for the server's port, opened when it is asked for
  // first; status kPortTaken, and in `fd` minus the errno.  `fresh`: it takes clients from now on.
  Outcome open(const Request& request, int& fd, bool& fresh);
  // Of a group that is taken over: the socket that its nodes have; ours now.
  void adopt(std::uint16_t port, int fd);
  const std::map<std::uint16_t, Socket>& sockets() const { return sockets_; }

 private:
  Outcome refused(const Request& request, int error, int& fd) const;

  setup::Ports publish_;
  std::map<std::uint16_t, Socket> sockets_;  // by the server's port
  std::set<std::uint16_t> unreached_;        // the server's ports
};

}  // namespace crane::launcher
