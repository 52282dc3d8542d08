// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients of a virtual address, whose connections continue on the next leader's host.
//
// Every replica keeps the output that a client may not have acknowledged; the leader reports now
// and then how much is acknowledged (TAKEN).  A new leader makes each socket after all of that
// output, and probes the client for how much it has.  Then it makes the socket again after that,
// and serves.
//
//   leader: accepted() -- written(), committed() .. -- ended() or stop()
//   next:   lead() -- take() .. -- go_on() -- (a client answers, or kPatienceNs is over) -- serve
//
// Threads: the node's one thread.

#include <event2/event.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/clients/egress_gate.h"
#include "proxy/clients/woken.h"
#include "proxy/replica/clients/batch.h"
#include "proxy/replica/clients/client_list.h"
#include "proxy/replica/clients/client_moves.h"

namespace crane::proxy {

class MovedClients final : public ClientMoves {
 public:
  // The owner of the clients.
  class Owner : public Woken {
   public:
    // As Clients::serve_moved() and Clients::gone().
    virtual void serve_moved(Client& client, ClientSocket socket, std::uint64_t put) = 0;
    virtual void gone(Client& client) = 0;

   protected:
    ~Owner() = default;
  };

  // `address`: the virtual address.  Errors: those of EgressGate; then connections end with their
  // leader.
  static Result<std::unique_ptr<MovedClients>> open(event_base* base, const std::string& address,
                                                    Batch& batch, Owner& owner);
  ~MovedClients();
  MovedClients(const MovedClients&) = delete;
  MovedClients& operator=(const MovedClients&) = delete;

  void add_port(std::uint16_t port) { gate_->add_port(port); }

  // The content of CONNECT for a client that connected to `local`; mss 0: it cannot move.
  TcpStart start_of(const ClientSocket& socket, const VirtualAddress& local,
                    const VirtualAddress& peer) const;
  // This leader is deposed.  It sends nothing more to the client, which continues with the next
  // leader.
  struct Departure {
    std::uint64_t taken = 0;       // bytes of output that the client has acknowledged
    std::vector<std::byte> lacks;  // bytes that were put and that the client has not acknowledged
  };
  Departure leave(Client& client);

  void committed(const Client& client) override;
  void written(Client& client) override;
  void ended(Client& client) override;
  void resume_reading() override { gate_->resume_reading(); }
  void lead(std::uint32_t reign) override;
  bool take(Client& client, std::uint16_t host_port) override;
  void go_on() override { gate_->go_on(); }
  void silence(bool on) noexcept override { gate_->silence(on); }
  void stop() override;
  void flush() override { gate_->flush(); }

 private:
  MovedClients(event_base* base, Batch& batch, Owner& owner)
      : base_(base), batch_(batch), owner_(owner) {}

  std::uint32_t clock() const noexcept;
  static void on_tick(int, short, void* argument);
  void tick();
  ClientSocket make(const Client& client, std::uint64_t put,
                    std::span<const std::byte> output) const;
  void look_at_answers(std::int64_t now_ns);
  void serve(Client& client);
  void propose_acknowledged();
  void arm();

  event_base* base_;
  Batch& batch_;
  Owner& owner_;
  std::unique_ptr<EgressGate> gate_;
  VirtualAddress address_{};
  std::uint32_t reign_ = 0;
  bool leads_ = false;
  std::vector<Client*> unanswered_;  // clients that have not answered the probe
  std::int64_t first_request_ns_ = 0, last_request_ns_ = 0;
  std::vector<Client*> written_;             // since the last TAKEN was proposed
  std::vector<TakenBody> unproposed_takes_;  // to be proposed
  event* tick_ = nullptr;
};

}  // namespace crane::proxy
