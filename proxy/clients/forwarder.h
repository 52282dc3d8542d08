// SPDX-License-Identifier: Apache-2.0
#pragma once
// Clients that connected to a follower's host.  Their TCP connections are forwarded to the leader's
// host, byte for byte, including half closes and resets.  The server there sees this host as the
// peer; this node's log names the real one.
//
// Back-pressure: at most kBuffered bytes wait per direction; beyond that the sender is not read.
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT FORWARD-1  All connections lead to the same target: set_target() with another one
//                      resets them, because a change of the leader resets every client (DESIGN C8).

#include <event2/event.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>

#include "proxy/clients/woken.h"

struct bufferevent;

namespace crane::node {

class Forwarder {
 public:
  // `woken` outlives it.
  Forwarder(event_base* base, proxy::Woken& woken);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  // Sets the leader's host; empty: there is none, and take() resets clients.  Connections to
  // another host are reset.
  void set_target(const std::string& address);
  // Takes over `client`.  `port`: where the leader's host accepts this server's clients.
  void take(int client, std::uint16_t port, const std::string& peer);

  std::size_t connections() const noexcept { return pairs_.size(); }
  std::uint64_t taken() const noexcept { return accepted_; }

 private:
  struct Pair;

  static void on_read(bufferevent* from, void* pair);
  static void on_written(bufferevent* to, void* pair);
  static void on_event(bufferevent* side, short what, void* pair);
  static void pass_on(bufferevent* from, bufferevent* to);
  void end(Pair* pair, bool reset);

  event_base* base_;
  proxy::Woken& woken_;
  std::string target_;
  std::uint64_t accepted_ = 0;
  std::size_t most_;  // connections, two descriptors each
  std::unordered_set<Pair*> pairs_;
};

// Closes so that the peer sees a reset.
void reset_socket(int fd) noexcept;

}  // namespace crane::node
