// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an operator asks of a running node (crane-ctl, at control.sock): the request is checked
// against the schema, carried out or handed on, and answered with one line.
//
// Threads: the node's one thread.
// INVARIANT REQ-1  Each request is answered exactly once, with what was done or why it was refused.
// INVARIANT REQ-2  A replica whose absence would leave no majority does not leave.

#include <cstdint>
#include <functional>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/host/config.h"
#include "proxy/host/supervisor.h"
#include "proxy/replica/role/grants.h"
#include "proxy/replica/role/leadership.h"
#include "runtime/control/schema.h"

namespace crane::node {

struct OperatorActions {
  std::function<nlohmann::json()> status;
  // A checkpoint, or a restart of the server on its files; the answer.
  std::function<std::string(const control::Message& request)> checkpoint;
  // The server with another command line, or another build of Crane; the answer.
  std::function<std::string(const control::Message& request)> upgrade;
  std::function<bool()> takes_checkpoint;
  std::function<void(std::uint32_t signo)> signal;  // through the log
  std::function<void()> leave;                      // in order, now
  // Else it only votes.
  std::function<bool(ReplicaId who)> has_server;
  // Before the lead goes: how long what clients have sent may still come in.  Empty: not at all.
  std::function<std::int64_t()> lets_in_ns;
};

class OperatorRequests {
 public:
  // All outlive it.
  OperatorRequests(const Config& config, consensus::Consensus& group,
                   const replica::Leadership& leadership, Supervisor& supervisor,
                   OperatorActions actions)
      : config_(config),
        group_(group),
        leadership_(leadership),
        supervisor_(supervisor),
        actions_(std::move(actions)) {}

  std::string answer(const std::string& request);
  // Does what is due; returns when to call it again.
  std::int64_t step(std::int64_t now_ns);
  // The lead goes in a moment: clients are read, and hear nothing.
  bool hands_over() const noexcept { return hands_over_at_ns_ != replica::kNever; }
  // Calls `end`, which ends this node in order, when what clients have sent is in; at once when
  // there is nothing to let in.
  void end_when_let_in(std::function<void()> end);

 private:
  static constexpr int kAnyOther = -1;
  std::string transfer(int to);
  // Calls `then` when what clients have sent is in.  False: there is nothing to let in.
  bool let_in(std::function<Outcome()> then);
  Outcome hand_over(int to);
  std::string change_member(const control::Message& request);
  std::string signal_server(std::uint32_t number);
  std::string copy_log(const control::Message& request);
  std::string leave();
  std::string bring_back(const control::Message& request);

  const Config& config_;
  consensus::Consensus& group_;
  const replica::Leadership& leadership_;
  Supervisor& supervisor_;
  const OperatorActions actions_;
  std::int64_t hands_over_at_ns_ = replica::kNever;
  std::function<Outcome()> hands_over_;
};

}  // namespace crane::node
