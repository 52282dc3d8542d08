// SPDX-License-Identifier: Apache-2.0
#pragma once
// The proxy: the leader's clients on one side, entries and output records on the other.
//
// Every replica holds the same listening sockets; only the one that leads accepts on them, and only
// for ports on which its own server listens.  Inputs of a loop iteration are collected in a Batch
// and proposed together.  Stepping down resets every client unanswered: what was read may or may
// not have been committed, only the client can know what to repeat (DESIGN C8).
//
//   loop:  [libevent callbacks: accept, read -> batch]  output(record)*  propose_inputs(grant)
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT CLIENT-1  A connection is in by_conn_ from when its CONNECT was proposed until the
//               server closed it and its output is out.
// INVARIANT CLIENT-2  While not leading there is no connection.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dmt/sequence/output.h"
#include "proxy/clients/batch.h"
#include "proxy/clients/connection.h"

namespace crane::proxy {

struct ProxyOptions {
  ConnectionOptions connection;
  std::uint64_t queued_bytes_max = 1ULL << 30;
};

struct ProxyCounters {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;       // no listener or a full backlog
  std::uint64_t reset_slow = 0;    // global bound on queued output
  std::uint64_t reset_leader = 0;  // clients reset because leadership ended
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
  // `on`: the sockets do not listen, which must be this process's own: clients are refused by
  // the kernel, also those who wait there, and a leader's own are reset.  Off: they listen again.
  void refuse(bool on);
  // The sockets that are here; they stay ours.
  void for_each_listener(const std::function<void(std::uint16_t port, int fd)>& visit) const;
  // The own server listens there, or does not any more.
  void set_listening(std::uint16_t port, bool listening);

  // Starts (or stops) taking clients.  Stopping resets all of them and forgets the batch.
  void lead(bool leading);
  bool leading() const noexcept { return leading_; }
  // What to do with clients that come while this replica follows, on listening sockets of its own:
  // `on` hands them to the function, else they wait in the kernel.  `peer` as text.
  using StrangerFn = std::function<void(int fd, std::uint16_t port, const std::string& peer)>;
  void set_strangers(StrangerFn take) { strangers_ = std::move(take); }
  void take_strangers(bool on);
  // What the own server's backlog on `port` takes beyond the entries up to `applied`.
  struct Room {
    std::uint64_t applied;
    std::uint64_t connections;
  };
  using RoomFn = std::function<Room(std::uint16_t port)>;
  void set_room(RoomFn room) { room_ = std::move(room); }
  // Clients may wait in the kernel's queue because the server's is full: look again soon.
  bool waits_for_room() const noexcept;
  void look_for_room();
  // While paused, clients are neither accepted nor read (the pipeline is full).
  void pause(bool paused);
  bool paused() const noexcept { return paused_; }

  // One record of the own server's output ring.
  void output(const OutputHeader& header, std::span<const std::byte> bytes);
  // Proposes what was read; see Batch::propose_all.
  Outcome propose_inputs(GrantTurns grant) { return batch_.propose_all(grant); }
  Batch& batch() noexcept { return batch_; }

  std::size_t connections() const noexcept { return clients_.size(); }
  // Output bytes that clients have not taken yet.
  std::uint64_t queued_bytes() const noexcept { return queued_; }
  const ProxyCounters& counters() const noexcept { return counters_; }

 private:
  struct Listener;
  struct Client;

  static void on_accept(int fd, short what, void* listener);
  static void on_client(int fd, short what, void* client);
  static void on_writable(int fd, short what, void* client);

  void accept_some(Listener& listener);
  bool has_room(Listener& listener);
  void take_client(Listener& listener, int fd, const VirtualAddress& peer);
  void read_client(Client& client);
  void opened(Opener& opener);
  void write_done(Client& client, std::size_t queued_before, bool done);
  void watch_reading(Client& client, bool on);
  void watch_writing(Client& client, bool on);
  void update_accepting(Listener& listener);
  void forget(Client& client);
  void reset_slowest();
  void reset_all();
  Client* find(std::uint64_t conn) noexcept;

  event_base* base_;
  const ProxyOptions options_;
  std::function<void()> on_event_;
  Batch batch_;
  bool leading_ = false;
  StrangerFn strangers_;
  bool takes_strangers_ = false;
  bool refuses_ = false;
  bool paused_ = false;
  bool out_of_descriptors_ = false;
  std::uint64_t queued_ = 0;
  ProxyCounters counters_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint64_t, Client*> by_conn_;
  RoomFn room_;
};

}  // namespace crane::proxy
