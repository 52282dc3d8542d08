// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients of a virtual address, whose connections go on on the host of the next leader.
//
// Every replica keeps the output that a client may not have acknowledged, which the leader tells
// now and then (TAKEN).  A new leader makes each socket behind all that it has of that output, and
// asks the client how much it has; then it makes the socket again behind that, and serves.
//
//   leader: accepted() -- written(), committed() .. -- ended() or stop()
//   next:   lead() -- take() .. -- go_on() -- (a client answers, or kPatienceNs is over) -- serve
//
// Threads: the node's one thread.

#include <event2/event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/clients/batch.h"
#include "proxy/clients/client_list.h"
#include "proxy/clients/egress_gate.h"

namespace crane::proxy {

class MovedClients {
 public:
  struct Actions {
    // The loop has woken.
    std::function<void()> woke;
    // The client's socket is here, behind so much of the output; none: it cannot go on.
    std::function<void(Client&, ClientSocket, std::uint64_t put)> serve;
    // It has all of the output of a server that has closed it, or it has left.
    std::function<void(Client&)> gone;
  };

  // `address`: the virtual address.  Errors: of EgressGate; connections end with their leader.
  static Result<std::unique_ptr<MovedClients>> open(event_base* base, const std::string& address,
                                                    Batch& batch, Actions actions);
  ~MovedClients();
  MovedClients(const MovedClients&) = delete;
  MovedClients& operator=(const MovedClients&) = delete;

  void add_port(std::uint16_t port) { gate_->add_port(port); }

  // --- on the leader
  // What CONNECT says of a client that came to `local`; mss 0: it cannot move.
  TcpStart start_of(const ClientSocket& socket, const VirtualAddress& local,
                    const VirtualAddress& peer) const;
  // More of its input is committed.
  void committed(const Client& client);
  // Output of it was put into its socket.
  void written(Client& client);
  // It is forgotten.
  void ended(Client& client);
  // All that is committed by now was told.
  void settle() { gate_->settle(); }

  // --- changes of the leader
  // This replica begins to lead; `reign` rises from one leader to the next.
  void lead(std::uint32_t reign);
  // Makes the socket of a connection that an earlier leader had.  False: it cannot go on.
  bool take(Client& client, std::uint16_t host_port);
  // All that go on were taken.
  void go_on() { gate_->go_on(); }
  // This leader has no quorum, or has one again.
  void hush(bool on) noexcept { gate_->hush(on); }
  // It leads no more, and says nothing more to the client, who goes on with the next leader.
  void leave(Client& client);
  void stop();
  // What was sent in order leaves first: the group ends.
  void flush() { gate_->flush(); }

 private:
  MovedClients(event_base* base, Batch& batch, Actions actions)
      : base_(base), batch_(batch), actions_(std::move(actions)) {}

  std::uint32_t clock() const noexcept;
  static void on_tick(int, short, void* argument);
  void tick();
  ClientSocket make(const Client& client, std::uint64_t put,
                    std::span<const std::byte> output) const;
  void look_at_answers(std::int64_t now_ns);
  void serve(Client& client);
  void tell_what_is_taken();
  void arm();

  event_base* base_;
  Batch& batch_;
  const Actions actions_;
  std::unique_ptr<EgressGate> gate_;
  VirtualAddress address_{};
  std::uint32_t reign_ = 0;
  bool leads_ = false;
  std::vector<Client*> asked_;  // who have not answered
  std::int64_t asked_since_ns_ = 0, asked_at_ns_ = 0;
  std::vector<Client*> written_;  // since TAKEN was proposed last
  std::vector<TakenBody> taken_;  // to be proposed
  event* tick_ = nullptr;
};

}  // namespace crane::proxy
