// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica decides about the group's clients: who is accepted, what becomes an entry, what is
// put into which socket, and what becomes of connections when the leader changes.
//
// The event loop of crane-node (proxy/clients/proxy.h) and the simulator (proxy/sim/node.h) are
// shells around it:
//
//   something happens: a method is called, and then
//     as long as take_actions() gives a list: carry out each action, in order
//
// Sockets are read and written at once, by SocketCalls; whatever else is to be done is an action.
// A shell whose process may be stopped inside of a call of SocketCalls carries out nothing before
// that call has returned.
//
// A replica that follows knows the leader's clients as well: what the log brings and its own server
// writes to them.  Where the host's nodes share sockets it takes them over when it leads, and the
// connections go on; a connection that cannot go on is reset, for the client and by a RESET entry.
// Without shared sockets stepping down resets every client unanswered: what was read may or may not
// have been committed, only the client can know what to repeat (DESIGN C8).
//
// Threads: the node's one thread.  Pure but for SocketCalls and ClientMoves: no clock, no callback.
// INVARIANT CLIENT-2  While not leading no client's socket is read or written.
// INVARIANT LISTEN-2  A leader's host takes clients at a port only while the server listens there.

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
  bool opens = true;  // false: a replay, which is given what came of the server's connections
  std::uint64_t queued_bytes_max = 1ULL << 30;
  bool shares_listeners = true;  // other nodes of this host have the same listening sockets
  std::size_t tail_look = kTailLook;
};

// A rule removed, for the worlds that prove that its absence is noticed (proxy/sim).
enum class ClientMutant : std::uint8_t {
  kNone,
  kDropOutput,     // CONN-5: a follower keeps no output
  kTellEarly,      // the table says what was written, not what was put
  kLoseUnclaimed,  // a client that was accepted in vain is forgotten
  kNotLogged,      // no replica says that a connection is in the log
  kForgetEnd,      // a FIN that came with bytes is not looked for behind them
};

struct ProxyCounters {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;       // no listener or a full backlog
  std::uint64_t reset_slow = 0;    // global bound on queued output
  std::uint64_t reset_leader = 0;  // clients reset because the leader changed
  std::uint64_t adopted = 0;       // whose connections went on through a change of the leader
  std::uint64_t last_adopted = 0, last_reset = 0;  // at the last change
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

// What the own server's backlog takes beyond the entries up to `applied`.
struct BacklogSpace {
  std::uint64_t applied;
  std::uint64_t connections;
};

// A port of the server.
struct ServerPort {
  explicit ServerPort(std::uint16_t server_port) noexcept : port(server_port) {}
  bool has_room(const BacklogSpace& space);

  const std::uint16_t port;
  std::uint16_t host_port = 0;  // at which clients come; 0: its socket has not come yet
  bool server_listens = false;
  bool restarts = false;   // the server is restarted: clients wait in the kernel's queue
  bool full = false;       // the backlog is: who comes waits in the kernel's queue
  bool accepting = false;  // as the last Accept says
  // The server's backlog; conservative: what is admitted meanwhile is counted twice, so that no
  // CONNECT finds a full queue.
  std::size_t unproposed = 0;            // clients whose CONNECT has no place in the log yet
  std::deque<std::uint64_t> unadmitted;  // places of CONNECTs that the own server may not have
  std::deque<ClientSocket> unclaimed;    // accepted by an earlier leader, and not proposed
};

// What the shell knows of a new socket.
struct SocketView {
  VirtualAddress peer{}, local{};
  std::uint32_t slot = kNoTableSlot;  // claimed for it, where sockets are shared
  SocketId id{};
  TcpStart tcp{};  // mss 0: its connection cannot move to another host
};

class Clients {
 public:
  explicit Clients(const ClientOptions& options, ClientMutant mutant = ClientMutant::kNone)
      : options_(options), mutant_(mutant) {}

  // Gives the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(ClientActionList& out) {
    out.clear();
    std::swap(out, actions_);
    return !out.empty();
  }

  // Connections outlive their leader on this host.  `slots` outlives the object.
  void share(const ConnectionSlots& slots) noexcept { slots_ = &slots; }
  // .. or move to the next leader's host.
  void move(ClientMoves& moves) noexcept { moves_ = &moves; }

  // --- ports
  // The listening socket of the server's `port` is here.
  void add_port(std::uint16_t port, std::uint16_t host_port);
  void set_listening(std::uint16_t port, bool listening, bool restarts);
  void refuse(bool on);
  // No descriptor is left for clients, or there are some again.
  void pause_accepting(bool on);
  // While this replica follows, clients that come are accepted; accepted() is not for them.
  void take_clients_to_forward(bool on);
  bool accepts(std::uint16_t port) const noexcept;
  // A leader may take one more client at that port; false: no more are accepted until look() says
  // that there is room.
  bool may_take(std::uint16_t port, const BacklogSpace& space);
  void look(std::uint16_t port, const BacklogSpace& space);
  bool is_full(std::uint16_t port) const noexcept;
  bool waits_for_room() const noexcept;
  // One that an earlier leader has accepted in vain; none: the next one waits in the kernel.
  ClientSocket next_unclaimed(std::uint16_t port);
  bool has_unclaimed(std::uint16_t port) const noexcept;
  // REQUIRES: leading().
  void accepted(std::uint16_t port, ClientSocket socket, const SocketView& seen);

  // --- clients
  // More may be there to read; `ends`: the client's FIN or reset as well, perhaps behind bytes.
  void readable(Client& client, bool ends);
  // The socket takes more.
  void writable(Client& client);
  // Reads each client once for `outage`, a number that rises; false: call again, the batch is full
  // or clients are paused.  REQUIRES: leading().
  bool read_all(std::uint64_t outage);
  // While paused, clients are neither accepted nor read (the pipeline is full).
  void pause(bool paused);
  bool paused() const noexcept { return paused_; }
  // Behind committed(): reads on from clients whose inputs were committed.
  void resume_reading();
  // Proposes what was read; see Batch::propose_all.
  template <typename Propose>
  Outcome propose(GrantTurns grant, Propose&& propose_entry) {
    return batch_.propose_all(grant, propose_entry,
                              [this](Opener& opener) { named(static_cast<Client&>(opener)); });
  }

  // --- the log and the own server, on every replica
  void committed(EntryType type, Index index, std::span<const std::byte> body);
  // A record of a connection, or several of kBytes.  `last`: kShutdown or kClose is the next one.
  void output(const OutputHeader& header, Pieces pieces, bool last);
  // While it follows: what the leader is done with is forgotten.
  void prune();
  // As Proxy's.
  void restore(ConnId conn, const ConnectBody& opened, const ConnectionProgress& progress,
               const std::string& path);
  void recover_at(std::uint64_t clock) noexcept { last_asked_ = kOutboundBit | clock; }

  // --- connections that the server opens
  // The own server asks for one.
  void asked(ConnId conn, const Destination& to);
  // .. had asked, before this replica recovered.
  void wait_for_outcome(ConnId conn, const Destination& to);
  // What came of Dial: `error`, or a socket.
  void dialed(ConnId conn, int error, ClientSocket socket, const SocketView& seen);

  // --- changes of the leader
  // Sockets of clients that earlier leaders held.
  void sockets_adopted(std::vector<ClientSocket> sockets);
  // Another process has collected what this one held.
  void release_sockets();
  // All sockets, also of Close that was not carried out: the process ends.
  std::vector<ClientSocket> surrender_all();
  // REQUIRES: as Proxy::lead().  `resets_all`: sockets may still be used by an earlier leader.
  void lead(std::uint32_t reign, bool resets_all);
  void follow();
  bool leading() const noexcept { return leading_; }
  // Behind lead(): the server has this connection, which no client here is the other end of.
  void reset_unless_known(ConnId conn);
  // All clients are reset.  REQUIRES: leading().
  void reset_all_unheard();

  // --- of a virtual address (ClientMoves)
  void hold_output(bool on);
  // Another host has the address, or a quorum is missing.
  void silence(bool on) noexcept {
    if (moves_ != nullptr && leading_) moves_->silence(on);
  }
  // The client's socket is here, behind so much of the output; none: it cannot go on.
  void serve_moved(Client& client, ClientSocket socket, std::uint64_t put);
  // It has all of the output of a server that has closed it, or it has left.
  void gone(Client& client);
  // Leave was carried out: the client has acknowledged `taken` bytes, and lacks these.
  void left(Client& client, std::uint64_t taken, std::span<const std::byte> lacks);

  Batch& batch() noexcept { return batch_; }
  // Clients that this replica serves, or whose connections it would go on with.
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
  // While it lives the client's queue changes: queued_ is right again behind it.
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
  void tell_put(const Client& client);
  void forget(Client& client);
  void reset_slowest();
  void reset_all();
  void trim(Client& client);

  void committed_of_client(EntryType type, std::span<const std::byte> body);
  void connected(Index index, const ConnectBody& body);
  void started(const StartBody& body);
  void taken(std::span<const std::byte> body);
  void told(Client& client, const ConnectBody& body);
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
  bool read_again_ = false;  // of all clients: the batch was full, or they are new here
  bool holds_output_ = false;
  std::uint64_t queued_ = 0;
  ProxyCounters counters_;
  std::vector<std::unique_ptr<ServerPort>> ports_;
  ClientList clients_;
  std::uint64_t last_asked_ = 0;   // number of the last connection that the own server has opened
  std::vector<Client*> settling_;  // bytes of them were committed
  std::vector<std::uint64_t> closed_;  // numbers of those that the own server has closed
  std::vector<ClientSocket> left_;     // of no client here, or not yet: the next leader's
};

}  // namespace crane::proxy
