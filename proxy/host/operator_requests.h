// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests of an operator to a running node (crane-ctl, at control.sock).  Each request is checked
// against the schema, carried out or passed on, and answered with one line.
//
// Threads: the node's one thread.
// INVARIANT REQ-1  Each request is answered exactly once, with the result or the refusal's reason.
// INVARIANT REQ-2  A replica whose absence would leave no majority does not leave.

#include <cstdint>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/host/config.h"
#include "proxy/host/supervisor.h"
#include "proxy/replica/role/grants.h"
#include "proxy/replica/role/leadership.h"
#include "runtime/control/schema.h"

namespace crane::node {

class OperatorRequests {
 public:
  // The node, which connects this class to its other parts.
  class Owner {
   public:
    virtual nlohmann::json status_json() = 0;
    // Requests a checkpoint, or a restart of the server on its files; returns the answer.
    virtual std::string ask_checkpoint(const control::Message& request) = 0;
    // Requests another command line of the server, or another build of Crane; returns the answer.
    virtual std::string ask_upgrade(const control::Message& request) = 0;
    virtual bool takes_checkpoint() const = 0;
    virtual void send_signal(std::uint32_t signo) = 0;  // through the log
    virtual void drain() = 0;                           // ends the node in order, permanently
    virtual void leave() = 0;                           // stops the node cleanly
    // Whether the replica has a server; otherwise it only votes.
    virtual bool has_server(ReplicaId who) const = 0;
    // Hands the lead to the replica whose server is best.
    virtual void abdicate(const char* why) = 0;
    // How long bytes already sent by clients may be read before the lead is handed over; 0: not.
    virtual std::int64_t input_drain_ns() const = 0;

   protected:
    ~Owner() = default;
  };

  // All arguments must outlive it.
  OperatorRequests(const Config& config, consensus::Consensus& group,
                   const replica::Leadership& leadership, Supervisor& supervisor, Owner& owner)
      : config_(config),
        group_(group),
        leadership_(leadership),
        supervisor_(supervisor),
        owner_(owner) {}

  std::string answer(const std::string& request);
  // Also called for crane-run, which sends this request on its own channel.
  std::string change_member(const control::Message& request);
  // Does what is due; returns the time of the next call.
  std::int64_t step(std::int64_t now_ns);
  // The lead is about to be handed over: clients are still read, but get no answers.
  bool hands_over() const noexcept { return hands_over_at_ns_ != replica::kNever; }
  // This node leaves when all that clients have sent is read, or at once if nothing is to be read.
  void leave_after_drain();

 private:
  static constexpr int kAnyOther = -1;
  std::string transfer(int to);
  // When all that clients have sent is read, this node hands the lead to that replica, or leaves.
  struct HandOver {
    bool leaves = false;
    int to = kAnyOther;
  };
  // False: there is nothing to read.
  bool drain_input(const HandOver& then);
  Outcome hand_over(const HandOver& then);
  std::string signal_server(std::uint32_t number);
  std::string copy_log(const control::Message& request);
  std::string events(const control::Message& request) const;
  std::string drain();
  std::string bring_back(const control::Message& request);

  const Config& config_;
  consensus::Consensus& group_;
  const replica::Leadership& leadership_;
  Supervisor& supervisor_;
  Owner& owner_;
  std::int64_t hands_over_at_ns_ = replica::kNever;
  HandOver hands_over_;
};

}  // namespace crane::node
