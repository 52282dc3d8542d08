// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's decisions about the group's clients: which are accepted, which input becomes an
// entry, which bytes go into which socket, and how connections continue when the leader changes.
//
// Two shells run it: the event loop of crane-node (proxy/clients/proxy.h) and the simulator
// (proxy/sim/node.h):
//
//   when something happens: call a method, and then
//     while take_actions() returns a list: carry out each action, in order
//
// Sockets are read and written at once, by SocketCalls; everything else is an action.  If the
// process of a shell can be stopped inside a call of SocketCalls, the shell carries out nothing
// before that call has returned.
//
// A follower knows the leader's clients as well: their input, which is in the log, and the output
// that its own server writes to them.  If the nodes of a host share sockets, a new leader
// takes them over and the connections continue.  A connection that cannot continue is reset, for
// the client and by a RESET entry.  Without shared sockets a leader that steps down resets every
// client without an answer: whether the input that it read was committed is unknown, so only the
// client can decide what to repeat (DESIGN C8).
//
// Threads: the node's one thread.  Pure but for SocketCalls and ClientMoves: no clock, no callback.
// INVARIANT CLIENT-2  While this replica does not lead, it reads and writes no client's socket.
// INVARIANT LISTEN-2  A leader's host accepts clients at a port only while the server listens
//                     there.

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dmt/sequence/output.h"
#include "proxy/replica/clients/batch.h"
#include "proxy/replica/clients/client_actions.h"
#include "proxy/replica/clients/client_list.h"
#include "proxy/replica/clients/client_moves.h"
#include "proxy/replica/clients/connection_slots.h"
#include "proxy/replica/clients/tuning.h"

namespace crane::proxy {

struct ClientOptions {
  ConnectionOptions connection;
  bool opens = true;  // false: a replay, which receives the outcomes of the server's connections
  std::uint64_t queued_bytes_max = 1ULL << 30;
  bool shares_listeners = true;  // other nodes of this host share the listening sockets
  std::size_t tail_look = kTailLook;
};

// A removed rule, for the tests which prove that simulated groups notice the removal (proxy/sim).
enum class ClientMutant : std::uint8_t {
  kNone,
  kDropOutput,     // CONN-5: a follower keeps no output
  kReportEarly,    // the table contains what was written, not what was put
  kLoseUnclaimed,  // a client that was accepted and not proposed is forgotten
  kNotLogged,      // no replica records that a connection is in the log
  kForgetEnd,      // a FIN that arrived together with bytes is not looked for after them
};

struct ProxyCounters {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;       // no listener, or a full backlog
  std::uint64_t reset_slow = 0;    // by the global bound on queued output
  std::uint64_t reset_leader = 0;  // clients reset because the leader changed
  std::uint64_t adopted = 0;       // connections that survived a change of the leader
  std::uint64_t last_adopted = 0, last_reset = 0;  // at the last change
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

// How many connections the backlog of this replica's server can take, after the entries up to
// `applied`.
struct BacklogSpace {
  std::uint64_t applied;
  std::uint64_t connections;
};

// A port of the server.
struct ServerPort {
  explicit ServerPort(std::uint16_t server_port) noexcept : port(server_port) {}
  bool has_room(const BacklogSpace& space);

  const std::uint16_t port;
  std::uint16_t host_port = 0;  // the port where clients connect; 0: its socket has not arrived yet
  bool server_listens = false;
  bool restarts = false;   // the server is restarted: clients wait in the kernel's queue
  bool full = false;       // the backlog is full: new clients wait in the kernel's queue
  bool accepting = false;  // as in the last Accept
  // The server's backlog.  The count is conservative: a CONNECT that was admitted meanwhile counts
  // twice, so that no CONNECT finds a full queue.
  std::size_t unproposed = 0;  // clients whose CONNECT has no place in the log yet
  // Indexes of CONNECTs that this replica's server may not have admitted.
  std::deque<std::uint64_t> unadmitted;
  std::deque<ClientSocket> unclaimed;  // accepted by an earlier leader, not proposed
};

// The shell's knowledge about a new socket.
struct SocketView {
  VirtualAddress peer{}, local{};
  std::uint32_t slot = kNoTableSlot;  // claimed for the socket, if sockets are shared
  SocketId id{};
  TcpStart tcp{};  // mss 0: its connection cannot move to another host
};

class Clients {
 public:
  explicit Clients(const ClientOptions& options, ClientMutant mutant = ClientMutant::kNone)
      : options_(options), mutant_(mutant) {}

  // Returns the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(ClientActionList& out) {
    out.clear();
    std::swap(out, actions_);
    return !out.empty();
  }

  // Connections survive their leader on this host.  `slots` outlives the object.
  void share(const ConnectionSlots& slots) noexcept { slots_ = &slots; }
  // Connections move to the next leader's host.  `moves` outlives the object.
  void move(ClientMoves& moves) noexcept { moves_ = &moves; }

  // --- ports
  // The listening socket of the server's `port` has arrived.
  void add_port(std::uint16_t port, std::uint16_t host_port);
  void set_listening(std::uint16_t port, bool listening, bool restarts);
  void refuse(bool on);
  // No descriptor is left for clients, or some are available again.
  void pause_accepting(bool on);
  // While this replica follows, new clients are accepted; accepted() is not called for them.
  void take_clients_to_forward(bool on);
  bool accepts(std::uint16_t port) const noexcept;
  // Whether a leader may accept one more client at that port.  After false no more are accepted
  // until look() finds room.
  bool may_take(std::uint16_t port, const BacklogSpace& space);
  void look(std::uint16_t port, const BacklogSpace& space);
  bool is_full(std::uint16_t port) const noexcept;
  bool waits_for_room() const noexcept;
  // Returns a client that an earlier leader accepted and did not propose.  Empty: the next one
  // waits in the kernel.
  ClientSocket next_unclaimed(std::uint16_t port);
  bool has_unclaimed(std::uint16_t port) const noexcept;
  // REQUIRES: leading().
  void accepted(std::uint16_t port, ClientSocket socket, const SocketView& seen);

  // --- clients
  // There may be more to read.  If `ends`, the client's FIN or reset has arrived, perhaps after
  // bytes.
  void readable(Client& client, bool ends);
  // The socket can take more.
  void writable(Client& client);
  // Reads each client once per `outage`, a number that increases.  False: call again, the batch is
  // full or clients are paused.  REQUIRES: leading().
  bool read_all(std::uint64_t outage);
  // While paused, clients are neither accepted nor read (the pipeline is full).
  void pause(bool paused);
  bool paused() const noexcept { return paused_; }
  // Called after committed(): continues to read clients whose inputs were committed.
  void resume_reading();
  // Proposes what was read; see Batch::propose_all.
  template <typename Propose>
  Outcome propose(GrantTurns grant, Propose&& propose_entry) {
    return batch_.propose_all(grant, propose_entry,
                              [this](Opener& opener) { named(static_cast<Client&>(opener)); });
  }

  // --- the log and this replica's server, on every replica
  void committed(EntryType type, Index index, std::span<const std::byte> body);
  // One record of a connection, or several of kBytes.  `last`: the next one is kShutdown or kClose.
  void output(const OutputHeader& header, Pieces pieces, bool last);
  // For a follower: forgets the connections that the leader has finished.
  void prune();
  // As in Proxy.
  void restore(ConnId conn, const ConnectBody& opened, const ConnectionProgress& progress,
               const std::string& path);
  void recover_at(std::uint64_t clock) noexcept { last_asked_ = kOutboundBit | clock; }

  // --- connections that the server opens
  // This replica's server requests a connection.
  void asked(ConnId conn, const Destination& to);
  // The server had requested the connection before this replica recovered.
  void wait_for_outcome(ConnId conn, const Destination& to);
  // The outcome of Dial: `error`, or a socket.
  void dialed(ConnId conn, int error, ClientSocket socket, const SocketView& seen);

  // --- changes of the leader
  // Sockets of clients that earlier leaders held.
  void sockets_adopted(std::vector<ClientSocket> sockets);
  // Another process has adopted the sockets that this one held.
  void release_sockets();
  // Returns all sockets, also those of Close actions that were not carried out: the process ends.
  std::vector<ClientSocket> surrender_all();
  // REQUIRES: as Proxy::lead().  `resets_all`: an earlier leader may still use the sockets.
  void lead(std::uint32_t reign, bool resets_all);
  void follow();
  bool leading() const noexcept { return leading_; }
  // Called after lead(): the server has this connection; resets it if no client of this replica has
  // it.
  void reset_unless_known(ConnId conn);
  // Resets all clients.  REQUIRES: leading().
  void reset_all_unknown();

  // --- of a virtual address (ClientMoves)
  void hold_output(bool on);
  // Another host has the address, or there is no quorum.
  void silence(bool on) noexcept {
    if (moves_ != nullptr && leading_) moves_->silence(on);
  }
  // The client's socket is here; its output continues at `put`.  No socket: it cannot continue.
  void serve_moved(Client& client, ClientSocket socket, std::uint64_t put);
  // The client has all output of a server that has closed the connection; or the client has left.
  void gone(Client& client);
  // Leave was carried out: the client has acknowledged `taken` bytes, and lacks `lacks`.
  void left(Client& client, std::uint64_t taken, std::span<const std::byte> lacks);

  Batch& batch() noexcept { return batch_; }
  // Clients that this replica serves, or would serve if it led.
  std::size_t size() const noexcept { return clients_.size(); }
  Client* find(ConnId conn) noexcept { return clients_.find(value(conn)); }
  // As ClientList::for_each.
  template <typename Visit>
  void for_each(Visit&& visit) {
    clients_.for_each(visit);
  }
  // Output bytes that are not known to be in the clients' sockets.
  std::uint64_t queued_bytes() const noexcept { return queued_; }
  const ProxyCounters& counters() const noexcept { return counters_; }

 private:
  // The client's queue changes during the lifetime of this object, which corrects queued_ at its
  // end.
  class QueueChange {
   public:
    QueueChange(Clients& clients, const Client& client) noexcept
        : clients_(clients), client_(client) {
      clients_.queued_ -= client_.queued();
    }
    ~QueueChange() { clients_.queued_ += client_.queued(); }
    QueueChange(const QueueChange&) = delete;
    QueueChange& operator=(const QueueChange&) = delete;

   private:
    Clients& clients_;
    const Client& client_;
  };

  template <typename Action>
  void act(Action&& action) {
    actions_.emplace_back(std::forward<Action>(action));
  }
  ServerPort* port_of(std::uint16_t port) const noexcept;
  ServerPort& own_port(std::uint16_t port);
  void follow_server(ServerPort& port);
  void update_accepting(ServerPort& port);
  void update_accepting();
  void read_client(Client& client);
  void named(Client& client);
  void write_done(Client& client, std::size_t queued_before, bool done);
  bool write_out(Client& client, const OutputHeader& header, Pieces pieces, bool last);
  bool write_urgent(Client& client, const OutputHeader& header, Pieces pieces);
  void publish_put(const Client& client);
  void forget(Client& client);
  void reset_slowest();
  void reset_all();
  void trim(Client& client);

  void committed_of_client(EntryType type, std::span<const std::byte> body);
  void connected(Index index, const ConnectBody& body);
  void started(const StartBody& body);
  void taken(std::span<const std::byte> body);
  void set_client_move(Client& client, const ConnectBody& body);
  bool holds_output_of(const Client& client) const noexcept {
    return holds_output_ && client.moves();
  }

  Client& add_outbound(ConnId conn);
  void outcome(const ConnectedBody& body);
  void forget_attempt(Client& client);
  void end_here(Client& client);

  void take_over(bool resets_all);
  void take_moved(std::uint32_t reign);
  bool adopt(Client& client, ClientSocket socket);
  void take_unclaimed(ClientSocket socket, bool logged);
  void step_down();
  void step_down(Client& client);

  const ClientOptions options_;
  const ClientMutant mutant_;
  ClientActionList actions_;
  Batch batch_;
  const ConnectionSlots* slots_ = nullptr;
  ClientMoves* moves_ = nullptr;
  bool leading_ = false;
  bool takes_clients_to_forward_ = false;
  bool refuses_ = false;
  bool paused_ = false;
  bool no_descriptors_ = false;
  bool read_again_ = false;  // for all clients: the batch was full, or they are new on this replica
  bool holds_output_ = false;
  std::uint64_t queued_ = 0;
  ProxyCounters counters_;
  std::vector<std::unique_ptr<ServerPort>> ports_;
  ClientList clients_;
  // Number of the last connection that this replica's server has opened.
  std::uint64_t last_asked_ = 0;
  std::vector<Client*> settling_;  // clients with newly committed bytes
  // Numbers of connections that this replica's server has closed.
  std::vector<std::uint64_t> closed_;
  std::vector<ClientSocket> left_;  // sockets without a client on this replica; for the next leader
};

}  // namespace crane::proxy
