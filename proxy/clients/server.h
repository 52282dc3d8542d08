// SPDX-License-Identifier: Apache-2.0
#pragma once
// The proxy: the group's clients on one side, entries and output records on the other.
//
// Every replica holds the same listening sockets; only the one that leads accepts on them, and only
// for ports on which its own server listens.  Inputs of a loop iteration are collected in a Batch
// and proposed together.
//
//   loop:  [libevent callbacks: accept, read -> batch]  output(record)*  propose_inputs(grant)
//          committed(entry)*  settle()
//
// Whom the server connects to is a client as well: the leader opens the connection, and proposes
// what came of it.
//
// A replica that follows knows the leader's clients as well: what the log brings and its own server
// writes to them.  On one host (share()) it takes their sockets over when it leads, and their
// connections go on; a connection that cannot go on is reset, for the client and by a RESET entry.
// Without shared sockets stepping down resets every client unanswered: what was read may or may not
// have been committed, only the client can know what to repeat (DESIGN C8).
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT CLIENT-2  While not leading no client's socket is read or written.
// INVARIANT LISTEN-2  A leader's host takes clients at a port only while the server listens there.

#include <event2/event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dmt/sequence/output.h"
#include "proxy/clients/accept_pause.h"
#include "proxy/clients/batch.h"
#include "proxy/clients/client_list.h"
#include "proxy/clients/listener.h"
#include "proxy/clients/moved_clients.h"
#include "proxy/clients/names.h"
#include "proxy/clients/outbound.h"
#include "proxy/clients/resolver.h"
#include "proxy/clients/shared_sockets.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {

struct ProxyOptions {
  ConnectionOptions connection;
  // Whom the server may connect to, when this replica leads: the log tells of a refusal, as of any.
  std::function<bool(const VirtualAddress& to)> allows = [](const VirtualAddress&) { return true; };
  FindSocket find_socket = [](std::string_view) { return HostPath{}; };  // of this host
  ResolverOptions resolver;                                              // of a leader
  bool opens = true;  // false: a replay, which is given what came of the server's connections
  std::uint64_t queued_bytes_max = 1ULL << 30;
  bool shares_listeners = true;  // other nodes of this host have the same listening sockets
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

class Proxy {
 public:
  static constexpr int kBacklogMost = 65535;  // the kernel takes what it allows

  // `on_event` is called first in every callback of the event loop (the loop has woken).
  Proxy(event_base* base, const ProxyOptions& options, Batch::ProposeFn propose,
        std::function<void()> on_event);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // A listening socket for the server's port; taken over.  A second one for the same port is
  // closed.
  void add_listener(std::uint16_t port, int fd, int backlog = kBacklogMost);
  bool has_listener(std::uint16_t port) const noexcept;
  // Its socket listens.
  bool takes_clients(std::uint16_t port) const noexcept;
  // `on`: the sockets do not listen, which must be this process's own: clients are refused by
  // the kernel, also those who wait there, and a leader's own are reset.  Off: they listen again.
  void refuse(bool on);
  // The sockets that are here; they stay ours.
  void for_each_listener(const std::function<void(std::uint16_t port, int fd)>& visit) const;
  // The own server listens there, or does not any more.
  // `restarts`: clients wait in the kernel until the server listens again.
  void set_listening(std::uint16_t port, bool listening, bool restarts = false);

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
  void hush();
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
  void collect();
  // Starts (or stops) taking clients.  Starting goes on with the earlier leader's: REQUIRES
  // may_lead(), and all output records up to the START of this reign.  Stopping forgets the batch.
  // `reign` rises from one leader of the group to the next.
  void lead(bool leading, std::uint32_t reign = 0);
  bool leading() const noexcept { return leading_; }
  // Behind lead(true): the server has this connection, which no client here is the other end of.
  void reset_unless_known(ConnId conn);
  // All clients are reset, if this replica leads: the group ends, or what they got may be wrong.
  void end();
  // What to do with clients that come while this replica follows, on listening sockets of its own:
  // `on` hands them to the function, else they wait in the kernel.  `peer` as text.
  using StrangerFn = std::function<void(int fd, std::uint16_t port, const std::string& peer)>;
  void set_strangers(StrangerFn take) { strangers_ = std::move(take); }
  void take_strangers(bool on);
  using RoomFn = std::function<BacklogSpace(std::uint16_t port)>;
  void set_room(RoomFn room) { room_ = std::move(room); }
  // Clients may wait in the kernel's queue because the server's is full: look again soon.
  bool waits_for_room() const noexcept;
  void look_for_room();
  // While paused, clients are neither accepted nor read (the pipeline is full).
  void pause(bool paused);
  bool paused() const noexcept { return paused_; }

  // An entry of the log, in its order.
  void committed(EntryType type, Index index, std::span<const std::byte> body);
  // Reads each client once for `outage`, a number that rises; false: call again, the batch is full
  // or clients are paused.  REQUIRES: leading.
  bool read_all(std::uint64_t outage);
  // Behind committed(): reads on from clients whose inputs were committed.
  void settle();
  // While it follows: what the leader is done with is forgotten.
  void tend();
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
  Outcome propose_inputs(GrantTurns grant) { return batch_.propose_all(grant); }
  Batch& batch() noexcept { return batch_; }

  // Clients that this replica serves, or whose connections it would go on with.
  std::size_t connections() const noexcept { return clients_.size(); }
  // Output bytes that are not known to be in the clients' sockets.
  std::uint64_t queued_bytes() const noexcept { return queued_; }
  const ProxyCounters& counters() const noexcept { return counters_; }
  const Destinations& destinations() const noexcept { return destinations_; }

 private:
  // While it lives the client's queue changes: queued_ is right again behind it.
  class QueueChange {
   public:
    QueueChange(Proxy& proxy, const Client& client) noexcept : proxy_(proxy), client_(client) {
      proxy_.queued_ -= client_.queued();
    }
    ~QueueChange() { proxy_.queued_ += client_.queued(); }
    QueueChange(const QueueChange&) = delete;
    QueueChange& operator=(const QueueChange&) = delete;

   private:
    Proxy& proxy_;
    const Client& client_;
  };

  static void on_accept(int fd, short what, void* listener);
  static void on_client(int fd, short what, void* client);
  static void on_writable(int fd, short what, void* client);
  static void on_dialed(int fd, short what, void* client);
  static void on_dial_again(int fd, short what, void* client);

  Listener* listener_of(std::uint16_t port) const noexcept;
  void accept_some(Listener& listener);
  bool has_room(Listener& listener);
  void take_client(Listener& listener, ClientSocket socket, const VirtualAddress& peer);
  void read_client(Client& client);
  void opened(Opener& opener);
  void write_done(Client& client, std::size_t queued_before, bool done);
  void follow_server(Listener& listener);
  void update_accepting(Listener& listener);
  void forget(Client& client);
  void reset_slowest();
  void reset_all();
  void trim(Client& client);

  void asked(const OutputHeader& header, std::span<const std::byte> bytes);
  void name_destination(const Destination& to);
  void wait_for_outcome(ConnId conn, const Destination& to);
  Client& add_outbound(ConnId conn);
  void dial(Client& client);
  void dial_all();
  void answer(Client& client, int error);
  void outcome(const ConnectedBody& body);
  void forget_attempt(Client& client);
  void end_here(Client& client);
  void open_names();

  void committed_of_client(EntryType type, std::span<const std::byte> body);
  void connected(Index index, const ConnectBody& body);
  void started(const StartBody& body);
  void take_over();
  void take_moved(std::uint32_t reign);
  void serve_moved(Client& client, ClientSocket socket, std::uint64_t put);
  void taken(std::span<const std::byte> body);
  void told(Client& client, const ConnectBody& body);
  void leave(Client& client);
  bool holds_output_of(const Client& client) const noexcept {
    return holds_output_ && client.moves();
  }
  bool adopt(Client& client, ClientSocket socket);
  void take_unclaimed(ClientSocket socket, bool logged);
  void step_down();
  void let_go();
  static void on_keeper_end(int fd, short what, void* proxy);
  void watch_keeper();

  event_base* base_;
  const ProxyOptions options_;
  std::function<void()> on_event_;
  Batch batch_;
  bool leading_ = false;
  StrangerFn strangers_;
  bool takes_strangers_ = false;
  bool refuses_ = false;
  bool paused_ = false;
  bool read_again_ = false;  // of all clients: the batch was full, or they are new here
  std::uint64_t queued_ = 0;
  ProxyCounters counters_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  AcceptPause pause_;  // of all of them
  ClientList clients_;
  Destinations destinations_;
  Names names_;
  std::uint64_t last_asked_ = 0;   // number of the last connection that the own server has opened
  std::vector<Client*> settling_;  // bytes of them were committed
  std::vector<std::uint64_t> closed_;  // numbers of those that the own server has closed
  std::vector<ClientSocket> left_;     // of no client here, or not yet: the next leader's
  std::unique_ptr<SharedSockets> shared_;
  event keeper_event_{};  // its end; or when to try again to start one
  std::unique_ptr<MovedClients> moved_;
  bool holds_output_ = false;
  bool takes_none_ = false;  // an earlier leader may still use the sockets
  RoomFn room_;
};

}  // namespace crane::proxy
