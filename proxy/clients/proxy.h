// SPDX-License-Identifier: Apache-2.0
#pragma once
// The proxy: the group's clients on one side, entries and output records on the other.
//
// Every replica holds the same listening sockets.  Only the leader accepts on them, and only for
// ports on which its own server listens.  The inputs of a loop iteration are collected in a Batch
// and proposed together.
//
//   loop:  [libevent callbacks: accept, read -> batch]  output(record)*  propose_inputs(grant)
//          committed(entry)*  resume_reading()
//
// proxy/replica/clients/clients.h makes the decisions about clients.  The proxy passes it the
// events of the node's event loop, and carries out its actions.
//
// Threads: the node's one thread, inside its event loop.

#include <event2/event.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dmt/sequence/output.h"
#include "proxy/clients/accept_pause.h"
#include "proxy/clients/fifo_reader.h"
#include "proxy/clients/listener.h"
#include "proxy/clients/moved_clients.h"
#include "proxy/clients/names.h"
#include "proxy/clients/outbound.h"
#include "proxy/clients/resolver.h"
#include "proxy/clients/shared_sockets.h"
#include "proxy/clients/tuning.h"
#include "proxy/clients/woken.h"
#include "proxy/replica/action_loop.h"
#include "proxy/replica/clients/clients.h"

namespace crane::proxy {

struct ProxyOptions : ClientOptions {
  ResolverOptions resolver;  // used while this replica leads
};

// The node, as far as the proxy needs it.
class ProxyHost : public Woken {
 public:
  // The space in the server's backlog of that port.
  virtual BacklogSpace space_of(std::uint16_t port);
  // Whether the server may connect to that address, if this replica leads; the log contains a
  // refusal like any outcome.
  virtual bool allows(const VirtualAddress& to);
  // The place of a unix socket of the server on this host.
  virtual HostPath find_socket(std::string_view path);

 protected:
  ~ProxyHost() = default;
};

// Receives clients that connect while this replica follows; `peer` as text.
class ClientsToForward {
 public:
  virtual void take_client_to_forward(int fd, std::uint16_t port, const std::string& peer) = 0;

 protected:
  ~ClientsToForward() = default;
};

class Proxy final : private MovedClients::Owner,
                    private Resolver::Owner,
                    private AcceptPause::Owner {
 public:
  static constexpr int kBacklogMost = 65535;  // the kernel reduces it to its limit

  // `host` outlives it.
  Proxy(event_base* base, const ProxyOptions& options, ProxyHost& host);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Takes over a listening socket for clients of that place.  A second one is closed.
  void add_listener(const Place& place, int fd, int backlog = kBacklogMost);
  bool has_listener(const Place& place) const noexcept;
  // The socket of that place listens.
  bool takes_clients(const Place& place) const noexcept;
  // `on`: stops listening.  REQUIRES: the sockets belong to this process only.  The kernel then
  // refuses clients, including those that wait there, and a leader's clients are reset.  Off:
  // listens again.
  void refuse(bool on);
  // Visits the listening sockets of this replica; they stay the proxy's.
  template <typename Visit>
  void for_each_listener(Visit&& visit) const {
    for (const auto& listener : listeners_)
      visit(Place(listener->port, listener->address), listener->fd());
  }
  // This replica's server listens there, or no longer does.  `restarts`: clients wait in the kernel
  // until the server listens again.
  void set_listening(const Place& place, bool listening, bool restarts = false);
  // The server listens at another address, whose socket also accepts all clients of this one.
  bool is_covered(const Place& place) const noexcept;
  // Closes sockets that the server has left and that would keep `place` from being opened.
  void make_way(const Place& place) noexcept;
  // A restarted server is up: it has left all places at which it does not listen now.
  void end_restart();

  // Connections survive their leader on this host.  Call before the first lead().
  void share(std::unique_ptr<SharedSockets> sockets);
  bool shares() const noexcept { return shared_ != nullptr; }
  // Connections of a virtual address survive their leader's host.  Call before the first lead().
  Outcome move_clients_of(const std::string& address);
  bool moves() const noexcept { return moved_ != nullptr; }
  // While leadership is handed over to another host, output waits for the next leader: an answer
  // would bring the client's next request to this host, too late.
  void hold_output(bool on);
  // Another host has the address: no packet of its clients leaves this host any more.
  void silence() { clients_.silence(true); }
  // Which connections end when this replica begins to lead.
  Resets resets() const noexcept {
    if (shared_) return Resets::kNone;
    return moved_ ? Resets::kThoseThatStay : Resets::kAll;
  }
  // Whether lead(true) may be called in this view: no earlier leader of this host uses the sockets
  // any more.  False: ask again at due_ns().
  bool may_lead(View view, std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return shared_ ? shared_->due_ns() : kNever; }
  // Takes the earlier leader's sockets over, so that lead(true) need not.  REQUIRES: may_lead().
  void adopt_sockets();
  // Starts or stops serving clients.  Starting continues with the earlier leader's clients.
  // REQUIRES: may_lead(), and all output records up to the START of this reign.  Stopping drops the
  // batch.  `reign` increases from one leader of the group to the next.
  void lead(bool leading, std::uint32_t reign = 0);
  bool leading() const noexcept { return clients_.leading(); }
  // Called after lead(true): the server has this connection; resets it if no client of this replica
  // has it.
  void reset_unless_known(ConnId conn) { clients_.reset_unless_known(conn); }
  // Resets all clients if this replica leads: the group ends, or their output may be wrong.
  void end();
  // For clients that connect while this replica follows, on listening sockets of its own.  `on`:
  // they are forwarded; off: they wait in the kernel.
  void set_clients_to_forward(ClientsToForward& clients) noexcept {
    clients_to_forward_ = &clients;
  }
  void take_clients_to_forward(bool on);
  // Clients may be waiting in the kernel's queue because the server's is full: look again soon.
  bool waits_for_room() const noexcept { return clients_.waits_for_room(); }
  void look_for_room();
  // While paused, clients are neither accepted nor read (the pipeline is full).
  void pause(bool paused);
  bool paused() const noexcept { return clients_.paused(); }

  // An entry of the log, in log order.
  void committed(EntryType type, Index index, std::span<const std::byte> body);
  // Reads each client once per `outage`, a number that increases.  False: call again, the batch is
  // full or clients are paused.  REQUIRES: leading.
  bool read_all(std::uint64_t outage);
  // Called after committed(): continues to read clients whose inputs were committed.
  void resume_reading();
  // For a follower: forgets the connections that the leader has finished.
  void prune_followed();
  // A connection of the server that this replica recovers; called before everything else.  `path`:
  // Destination::path.
  void restore(ConnId conn, const ConnectBody& opened, const ConnectionProgress& progress,
               const std::string& path = {});
  // The server had requested this connection, and its outcome is not in the log.
  void restore_attempt(ConnId conn, const Destination& to);
  // The server had asked for this name, and the answer is not in the log.
  void restore_question(std::uint64_t number, const NameRequest& request);
  // The server continues at this turn: it had made all requests of earlier turns.
  void recover_at(std::uint64_t clock) noexcept;

  // One record of this server's output ring, or several of kBytes whose bytes are consecutive.
  // `last`: the next record is the connection's kShutdown or kClose.
  void put_out(const OutputHeader& header, Pieces pieces, bool last = false);
  void output(const OutputHeader& header, std::span<const std::byte> bytes) {
    put_out(header, Pieces(&bytes, 1));
  }
  // Proposes what was read; see Batch::propose_all.
  template <typename Propose>
  Outcome propose_inputs(GrantTurns grant, Propose&& propose) {
    return clients_.propose(grant, propose);
  }
  Batch& batch() noexcept { return clients_.batch(); }

  // Clients that this replica serves, or would serve if it led.
  std::size_t connections() const noexcept { return clients_.size(); }
  // Output bytes that may not be in the clients' sockets yet.
  std::uint64_t queued_bytes() const noexcept { return clients_.queued_bytes(); }
  const ProxyCounters& counters() const noexcept { return clients_.counters(); }
  const Destinations& destinations() const noexcept { return destinations_; }

 private:
  // The events of a client's socket.
  struct Watch {
    Proxy* proxy;
    Client* client = nullptr;  // null: nothing is watched
    event read{}, write{};
  };
  // A connection that the server opens, until connect() has finished.
  struct Dialing {
    Proxy* proxy;
    ConnId conn;
    ClientSocket socket;  // empty: the next attempt follows soon
    int fifo = -1;        // an open FIFO, until its writer has written or closed; -1: none
    event due{};
  };

  static void on_accept(int fd, short what, void* listener);
  static void on_client(int fd, short what, void* watch);
  static void on_writable(int fd, short what, void* watch);
  static void on_dialed(int fd, short what, void* dialing);
  static void on_fifo(int fd, short what, void* dialing);
  static void on_dial_again(int fd, short what, void* dialing);
  static void on_keeper_end(int fd, short what, void* proxy);

  void run();
  void carry_out(const client_actions::Watch& action);
  void carry_out(const client_actions::WatchWriting& action);
  void carry_out(const client_actions::Unwatch& action);
  void carry_out(client_actions::Close& action);
  void carry_out(const client_actions::Accept& action);
  void carry_out(const client_actions::Listen& action);
  void carry_out(const client_actions::Dial& action);
  void carry_out(const client_actions::EndDial& action);
  void carry_out(const client_actions::SetPut& action);
  void carry_out(const client_actions::SetLogged& action);
  void carry_out(const client_actions::Release& action);
  void carry_out(const client_actions::KeepOnly& action);
  void carry_out(const client_actions::CloseSilently& action);
  void carry_out(const client_actions::LogSlowClient& action);

  bool is_active(const Listener& listener) const noexcept;
  bool may_close() const noexcept { return leading() || !options_.shares_listeners; }
  void close_leftovers(std::uint16_t port) noexcept;
  void update_accepting(std::uint16_t port);
  void accept_some(Listener& listener);
  void take_client(Listener& listener, ClientSocket socket, const VirtualAddress& peer);
  SocketView share_socket(const ClientSocket& socket);

  void asked(const OutputHeader& header, std::span<const std::byte> bytes);
  void name_destination(const Destination& to);
  void dial_fifo(ConnId conn, const Destination& to);
  Dialing& begin_dial(ConnId conn);
  ClientSocket end_dial(ConnId conn);

  void woke() override { host_.woke(); }
  void answered(const ResolvedBody& body) override;
  void accept_pause_changed() override;
  void serve_moved(Client& client, ClientSocket socket, std::uint64_t put) override;
  void gone(Client& client) override;

  void release_sockets();
  void watch_keeper();

  event_base* base_;
  const ProxyOptions options_;
  ProxyHost& host_;
  Clients clients_;
  replica::ActionLoop<ClientActionList> loop_;
  std::vector<std::unique_ptr<Watch>> watches_;  // by descriptor
  std::map<ConnId, std::unique_ptr<Dialing>> dialing_;
  std::map<ConnId, std::unique_ptr<FifoReader>> fifos_;
  ClientsToForward* clients_to_forward_ = nullptr;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::set<Place> listened_;  // by this replica's server
  AcceptPause pause_;         // for all listeners
  Destinations destinations_;
  Names names_;
  std::unique_ptr<SharedSockets> shared_;
  event keeper_event_{};  // the keeper's end; or the time of the next attempt to start one
  std::unique_ptr<MovedClients> moved_;
  bool adopts_none_ = false;  // an earlier leader may still use the sockets
};

}  // namespace crane::proxy
