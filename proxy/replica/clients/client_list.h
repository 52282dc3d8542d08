// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients that a replica knows: those that it serves, or those of the leader.
//
// Threads: the node's one thread.
// INVARIANT CLIENT-1  A connection is found by its number from when its CONNECT was proposed here,
//               or committed, or the own server has asked for it, until the server closed it and
//               its output is out.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dmt/sequence/entry.h"
#include "proxy/replica/clients/client_actions.h"
#include "proxy/replica/clients/connection.h"
#include "proxy/replica/clients/destination.h"

namespace crane::proxy {

struct ServerPort;

// Of a connection that the server opens: what has become of that.
enum class Opening : std::uint8_t {
  kOver,      // CONNECTED is in the log; or a client has opened it
  kWanted,    // the server has asked for it
  kProposed,  // .. and this replica, which leads, has proposed CONNECTED
};

// Of a client of a virtual address (client_moves.h).
struct MoveState {
  VirtualAddress peer{};
  std::uint16_t host_port = 0;
  TcpStart tcp{};           // mss 0: it stays on the leader's host
  std::uint64_t taken = 0;  // of the output, the client has acknowledged, as the log says
  bool told = true;         // the log says all that was put
  // While the client has to say what it has.
  ClientSocket asked;
  std::uint64_t asked_behind = 0;  // of the output
  std::uint32_t heard = 0;         // segments that were its answer
  std::int64_t heard_ns = 0;       // when the last one came
};

// A connection, and what its leader waits for.  Its events are edge-triggered: what is not read at
// once, because DATA is under way or the window is full, rings no second time.
struct Client final : Connection {
  Client(ClientSocket socket, std::uint16_t server_port, const ConnectionOptions& options,
         ClientActionList& list)
      : Connection(std::move(socket), server_port, options), actions(&list) {}
  Client(std::uint16_t server_port, const ConnectionOptions& options, ClientActionList& list)
      : Connection(server_port, options), actions(&list) {}

  void watch();
  void watch_writing(bool on) {
    if (on == writing || !watched) return;
    writing = on;
    actions->push_back(client_actions::WatchWriting{fd(), on});
  }
  void unwatch() noexcept override;
  void let_close(ClientSocket socket) noexcept override;
  // Its connect() is under way.
  void dial();
  void end_dial() {
    if (std::exchange(dials, false)) actions->push_back(client_actions::EndDial{conn});
  }

  ClientActionList* actions;
  ServerPort* accepted_at = nullptr;  // until its CONNECT is proposed
  SocketId id{};
  std::uint32_t slot = kNoTableSlot;  // in the host's connection table
  std::size_t place = 0;              // in the list
  MoveState move;
  bool committed = false;  // its CONNECT or CONNECTED is
  Opening opening = Opening::kOver;
  Destination to;              // whom the own server has asked for
  bool dials = false;          // Dialed will come
  bool readable = true;        // something may be there to read
  std::uint64_t read_for = 0;  // the last outage for which it was read
  bool ends = false;           // the client's FIN or reset is there, perhaps behind bytes
  bool settles = false;        // bytes of it were committed, and are in the socket
  bool watched = false;
  bool writing = false;     // its socket shall ring when it takes more
  std::size_t look_at = 0;  // of queued(), while another replica serves
};

class ClientList {
 public:
  Client& add(std::unique_ptr<Client> client);
  // Its CONNECT has a number.
  void named(Client& client) { by_conn_[value(client.conn)] = &client; }  // CLIENT-1
  Client* find(std::uint64_t conn) noexcept;
  void forget(Client& client);

  std::size_t size() const noexcept { return clients_.size(); }
  bool empty() const noexcept { return clients_.empty(); }
  // The last one first, so that `visit` may forget what it is given.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = clients_.size(); i-- > 0;) visit(*clients_[i]);
  }
  // The one that has taken least of its output.  REQUIRES: not empty.
  Client& slowest() noexcept;

 private:
  std::vector<std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint64_t, Client*> by_conn_;
  // What find() gave last, by number: three of four calls are about a client that was just found.
  static constexpr std::size_t kFoundLast = 256;
  std::array<Client*, kFoundLast> found_{};
};

}  // namespace crane::proxy
