// SPDX-License-Identifier: Apache-2.0
#pragma once
// The proxy: the group's clients on one side, entries and output records on the other.
//
// Every replica holds the same listening sockets; only the one that leads accepts on them, and only
// for ports on which its own server listens.  Inputs of a loop iteration are collected in a Batch
// and proposed together.
//
//   loop:  [libevent callbacks: accept, read -> batch]  output(record)*  propose_inputs(grant)
//          committed(entry)*  resume_reading()
//
// proxy/replica/clients/clients.h decides about clients.  The proxy gives it the events of the
// node's event loop, and carries out its actions.
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
  ResolverOptions resolver;  // of a leader
};

// What the proxy asks of its node.
class ProxyHost : public Woken {
 public:
  // Of the server's backlog at that port.
  virtual BacklogSpace space_of(std::uint16_t port);
  // Whom the server may connect to, when this replica leads: the log tells of a refusal, as of any.
  virtual bool allows(const VirtualAddress& to);
  // A unix socket of the server, on this host.
  virtual HostPath find_socket(std::string_view path);

 protected:
  ~ProxyHost() = default;
};

// Takes clients that come while this replica follows; `peer` as text.
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
  static constexpr int kBacklogMost = 65535;  // the kernel takes what it allows

  // `host` outlives it.
  Proxy(event_base* base, const ProxyOptions& options, ProxyHost& host);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // A listening socket for clients of that place; taken over.  A second one is closed.
  void add_listener(const Place& place, int fd, int backlog = kBacklogMost);
  bool has_listener(const Place& place) const noexcept;
  // Its socket listens.
  bool takes_clients(const Place& place) const noexcept;
  // `on`: the sockets do not listen, which must be this process's own: clients are refused by
  // the kernel, also those who wait there, and a leader's own are reset.  Off: they listen again.
  void refuse(bool on);
  // The sockets that are here; they stay ours.
  template <typename Visit>
  void for_each_listener(Visit&& visit) const {
    for (const auto& listener : listeners_)
      visit(Place(listener->port, listener->address), listener->fd());
  }
  // The own server listens there, or does not any more.
  // `restarts`: clients wait in the kernel until the server listens again.
  void set_listening(const Place& place, bool listening, bool restarts = false);
  // The server listens at another address, whose socket takes all clients of this one as well.
  bool is_covered(const Place& place) const noexcept;
  // Sockets that the server has left no longer keep `place` from being opened.
  void make_way(const Place& place) noexcept;
  // The server that was restarted is up: it has left all places at which it does not listen now.
  void end_restart();

  // Connections outlive their leader on this host.  Before the first lead().
  void share(std::unique_ptr<SharedSockets> sockets);
  bool shares() const noexcept { return shared_ != nullptr; }
  // Those of a virtual address outlive their leader's host.  Before the first lead().
  Outcome move_clients_of(const std::string& address);
  bool moves() const noexcept { return moved_ != nullptr; }
  // While the lead is handed over to another host, its clients' output waits for the next leader:
  // an answer would bring the next request here, where it comes too late.
  void hold_output(bool on);
  // Another host has the address: nothing of its clients leaves this one any more.
  void silence() { clients_.silence(true); }
  // Which connections end when this replica begins to lead.
  Resets resets() const noexcept {
    if (shared_) return Resets::kNone;
    return moved_ ? Resets::kThoseThatStay : Resets::kAll;
  }
  // Whether lead(true) may be called, in this view: an earlier leader of this host does not use the
  // sockets any more.  False: ask again at due_ns().
  bool may_lead(View view, std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return shared_ ? shared_->due_ns() : kNever; }
  // Takes the earlier leader's sockets over, so that lead(true) need not.  REQUIRES: may_lead().
  void adopt_sockets();
  // Starts (or stops) taking clients.  Starting goes on with the earlier leader's: REQUIRES
  // may_lead(), and all output records up to the START of this reign.  Stopping forgets the batch.
  // `reign` rises from one leader of the group to the next.
  void lead(bool leading, std::uint32_t reign = 0);
  bool leading() const noexcept { return clients_.leading(); }
  // Behind lead(true): the server has this connection, which no client here is the other end of.
  void reset_unless_known(ConnId conn) { clients_.reset_unless_known(conn); }
  // All clients are reset, if this replica leads: the group ends, or what they got may be wrong.
  void end();
  // Clients that come while this replica follows, on listening sockets of its own: `on` hands them
  // on, else they wait in the kernel.
  void set_clients_to_forward(ClientsToForward& strangers) noexcept {
    clients_to_forward_ = &strangers;
  }
  void take_clients_to_forward(bool on);
  // Clients may wait in the kernel's queue because the server's is full: look again soon.
  bool waits_for_room() const noexcept { return clients_.waits_for_room(); }
  void look_for_room();
  // While paused, clients are neither accepted nor read (the pipeline is full).
  void pause(bool paused);
  bool paused() const noexcept { return clients_.paused(); }

  // An entry of the log, in its order.
  void committed(EntryType type, Index index, std::span<const std::byte> body);
  // Reads each client once for `outage`, a number that rises; false: call again, the batch is full
  // or clients are paused.  REQUIRES: leading.
  bool read_all(std::uint64_t outage);
  // Behind committed(): reads on from clients whose inputs were committed.
  void resume_reading();
  // While it follows: what the leader is done with is forgotten.
  void prune_followed();
  // A connection of the server that this replica recovers; before all else.
  // `path`: Destination::path.
  void restore(ConnId conn, const ConnectBody& opened, const ConnectionProgress& progress,
               const std::string& path = {});
  // .. one that it had asked for, without an outcome.
  void restore_attempt(ConnId conn, const Destination& to);
  // .. the same of a name.
  void restore_question(std::uint64_t number, const NameRequest& request);
  // .. and all that it had asked for before this turn it has asked for.
  void recover_at(std::uint64_t clock) noexcept;

  // One record of the own server's output ring; or several of kBytes, whose bytes follow each
  // other.
  // `last`: the connection's kShutdown or kClose is the next record.
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

  // Clients that this replica serves, or whose connections it would go on with.
  std::size_t connections() const noexcept { return clients_.size(); }
  // Output bytes that are not known to be in the clients' sockets.
  std::uint64_t queued_bytes() const noexcept { return clients_.queued_bytes(); }
  const ProxyCounters& counters() const noexcept { return clients_.counters(); }
  const Destinations& destinations() const noexcept { return destinations_; }

 private:
  // Of a client's socket.
  struct Watch {
    Proxy* proxy;
    Client* client = nullptr;  // none: nothing is watched
    event read{}, write{};
  };
  // A connection that the server opens, until connect() has come to something.
  struct Dialing {
    Proxy* proxy;
    ConnId conn;
    ClientSocket socket;  // none: it is time for another attempt soon
    int fifo = -1;        // .. or this one is waited for: a writer has written, or has gone
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
  void carry_out(const client_actions::Leave& action);
  void carry_out(const client_actions::SaySlow& action);

  bool is_active(const Listener& listener) const noexcept;
  bool may_close() const noexcept { return leading() || !options_.shares_listeners; }
  void close_left(std::uint16_t port) noexcept;
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
  std::set<Place> listened_;  // by the own server
  AcceptPause pause_;         // of all of them
  Destinations destinations_;
  Names names_;
  std::unique_ptr<SharedSockets> shared_;
  event keeper_event_{};  // its end; or when to try again to start one
  std::unique_ptr<MovedClients> moved_;
  bool takes_none_ = false;  // an earlier leader may still use the sockets
};

}  // namespace crane::proxy
