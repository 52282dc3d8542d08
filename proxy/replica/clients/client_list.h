// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients that a replica knows: its own if it serves, otherwise the leader's.
//
// Threads: the node's one thread.
// INVARIANT CLIENT-1  A connection is found by its number from the moment when its CONNECT was
//                     proposed by this replica or committed, or its server requested the
//                     connection, until the server has closed it and its output is out.

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

// The state of a connection that the server opens.
enum class Opening : std::uint8_t {
  kOver,      // CONNECTED is in the log; or a client opened the connection
  kWanted,    // the server has requested it
  kProposed,  // the server has requested it, and this leader has proposed CONNECTED
};

// The state of a client of a virtual address (client_moves.h).
struct MoveState {
  VirtualAddress peer{};
  std::uint16_t host_port = 0;
  TcpStart tcp{};  // mss 0: the connection stays on the leader's host
  // Bytes of output that the client has acknowledged, according to the log.
  std::uint64_t taken = 0;
  bool all_logged = true;  // the log contains all that was put
  // While the client is probed for what it has.
  ClientSocket asked;
  std::uint64_t probe_position = 0;     // position in the output
  std::uint32_t answered_segments = 0;  // segments that answered the probe
  std::int64_t last_answer_ns = 0;      // when the last answer arrived
};

// A connection, and what its leader waits for.  Its events are edge-triggered: bytes that are not
// read at once, because DATA is under way or the window is full, cause no second event.
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
  void allow_close(ClientSocket socket) noexcept override;
  // connect() is in progress.
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
  bool committed = false;  // its CONNECT or CONNECTED is committed
  Opening opening = Opening::kOver;
  Destination to;              // where this replica's server connects to
  bool dials = false;          // Dialed will follow
  bool readable = true;        // there may be something to read
  std::uint64_t read_for = 0;  // the last outage for which it was read
  bool ends = false;           // the client's FIN or reset arrived, perhaps after unread bytes
  bool settles = false;        // committed bytes of it are still in the socket
  bool watched = false;
  bool writing = false;     // an event is wanted when the socket takes more
  std::size_t look_at = 0;  // value of queued() at which to look, while another replica serves
};

class ClientList {
 public:
  Client& add(std::unique_ptr<Client> client);
  // The CONNECT of `client` has a number.
  void named(Client& client) { by_conn_[value(client.conn)] = &client; }  // CLIENT-1
  Client* find(std::uint64_t conn) noexcept;
  void forget(Client& client);

  std::size_t size() const noexcept { return clients_.size(); }
  bool empty() const noexcept { return clients_.empty(); }
  // Visits the last one first, so that `visit` may forget the client that it receives.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = clients_.size(); i-- > 0;) visit(*clients_[i]);
  }
  // The client that has taken the least of its output.  REQUIRES: not empty.
  Client& slowest() noexcept;

 private:
  std::vector<std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint64_t, Client*> by_conn_;
  // The latest results of find(), by client number: three of four calls look for a client found
  // just before.
  static constexpr std::size_t kFoundLast = 256;
  std::array<Client*, kFoundLast> found_{};
};

}  // namespace crane::proxy
