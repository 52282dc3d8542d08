// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a leader does for clients whose connections move to the next leader's host: which bytes may
// be acknowledged, and the sockets that go on where an earlier leader's ended.
//
// Threads: the node's one thread.

#include <cstdint>

namespace crane::proxy {

struct Client;

class ClientMoves {
 public:
  // --- on the leader
  // More of its input is committed.
  virtual void committed(const Client& client) = 0;
  // Output of it was put into its socket.
  virtual void written(Client& client) = 0;
  // It is forgotten.
  virtual void ended(Client& client) = 0;
  // All that is committed by now was told.
  virtual void resume_reading() = 0;

  // --- changes of the leader
  // This replica begins to lead; `reign` rises from one leader to the next.
  virtual void lead(std::uint32_t reign) = 0;
  // Makes the socket of a connection that an earlier leader had; Clients::serve_moved() follows.
  // False: it cannot go on.
  virtual bool take(Client& client, std::uint16_t host_port) = 0;
  // All that go on were taken.
  virtual void go_on() = 0;
  // This leader has no quorum, or has one again.
  virtual void silence(bool on) noexcept = 0;
  virtual void stop() = 0;
  // What was sent in order leaves first: the group ends.
  virtual void flush() = 0;

 protected:
  ~ClientMoves() = default;
};

}  // namespace crane::proxy
