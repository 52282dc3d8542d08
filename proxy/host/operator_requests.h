// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an operator asks of a running node (crane-ctl, at control.sock): the request is checked
// against the schema, carried out or handed on, and answered with one line.
//
// Threads: the node's one thread.
// INVARIANT REQ-1  Each request is answered exactly once, with what was done or why it was refused.
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
  // The node, which knows the other parts.
  class Owner {
   public:
    virtual nlohmann::json status_json() = 0;
    // A checkpoint, or a restart of the server on its files; the answer.
    virtual std::string ask_checkpoint(const control::Message& request) = 0;
    // The server with another command line, or another build of Crane; the answer.
    virtual std::string ask_upgrade(const control::Message& request) = 0;
    virtual bool takes_checkpoint() const = 0;
    virtual void send_signal(std::uint32_t signo) = 0;  // through the log
    virtual void drain() = 0;                           // ends the node in order, for good
    virtual void leave() = 0;                           // ends it in order
    // Else it only votes.
    virtual bool has_server(ReplicaId who) const = 0;
    // Before the lead goes: how long what clients have sent may still come in; 0: not at all.
    virtual std::int64_t lets_in_ns() const = 0;

   protected:
    ~Owner() = default;
  };

  // All outlive it.
  OperatorRequests(const Config& config, consensus::Consensus& group,
                   const replica::Leadership& leadership, Supervisor& supervisor, Owner& owner)
      : config_(config),
        group_(group),
        leadership_(leadership),
        supervisor_(supervisor),
        owner_(owner) {}

  std::string answer(const std::string& request);
  // Also crane-run asks for it, on its own channel.
  std::string change_member(const control::Message& request);
  // Does what is due; returns when to call it again.
  std::int64_t step(std::int64_t now_ns);
  // The lead goes in a moment: clients are read, and hear nothing.
  bool hands_over() const noexcept { return hands_over_at_ns_ != replica::kNever; }
  // This node leaves when what clients have sent is in; at once when there is nothing to let in.
  void leave_when_let_in();

 private:
  static constexpr int kAnyOther = -1;
  std::string transfer(int to);
  // When all that clients have sent is in, this node hands the lead to that replica, or leaves.
  struct HandOver {
    bool leaves = false;
    int to = kAnyOther;
  };
  // False: there is nothing to let in.
  bool let_in(const HandOver& then);
  Outcome hand_over(const HandOver& then);
  std::string signal_server(std::uint32_t number);
  std::string copy_log(const control::Message& request);
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
