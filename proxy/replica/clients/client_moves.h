// SPDX-License-Identifier: Apache-2.0
#pragma once
// A leader's work for clients whose connections move to the next leader's host: which bytes it
// may acknowledge, and the sockets that continue where those of an earlier leader ended.
//
// Threads: the node's one thread.

#include <cstdint>

namespace crane::proxy {

struct Client;

class ClientMoves {
 public:
  // --- on the leader
  // More of the client's input is committed.
  virtual void committed(const Client& client) = 0;
  // Output was put into the client's socket.
  virtual void written(Client& client) = 0;
  // The client is forgotten.
  virtual void ended(Client& client) = 0;
  // All that is committed by now was reported by committed().
  virtual void resume_reading() = 0;

  // --- changes of the leader
  // This replica begins to lead; `reign` rises from one leader to the next.
  virtual void lead(std::uint32_t reign) = 0;
  // Makes the socket of a connection that an earlier leader had; Clients::serve_moved() follows.
  // False: the connection cannot continue.
  virtual bool take(Client& client, std::uint16_t host_port) = 0;
  // take() was called for all connections that continue.
  virtual void go_on() = 0;
  // This leader has no quorum, or has one again.
  virtual void silence(bool on) noexcept = 0;
  virtual void stop() = 0;
  // Called when the group ends: first sends everything that was to be sent in order.
  virtual void flush() = 0;

 protected:
  ~ClientMoves() = default;
};

}  // namespace crane::proxy
