// SPDX-License-Identifier: Apache-2.0
#pragma once
// The socket for crane-ctl's requests to the agent of its host: <dir>/<group>/h<N>/agent.sock
// (SOCK_SEQPACKET), which only the agent's user can reach.  One JSON object each way, as at a
// node's control socket:
//   {"do":"state"}    {"ok":true,"message":S,"node":true}   node: it runs; S: why the replica did
//                                                           not recover
//   {"do":"resume","forget":false}                          starts a drained replica
// A refusal is {"ok":false,"error":WORD,"message":S}.
//
// Threads: one.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/setup/messages.h"
#include "runtime/supervise/step.h"

namespace crane::launcher {

// Its name in the agent's directory.
inline constexpr char kAgentSocket[] = "agent.sock";

nlohmann::json answer_of(const supervise::Answer& answer);

class AgentSocket {
 public:
  AgentSocket() = default;
  ~AgentSocket();
  AgentSocket(const AgentSocket&) = delete;
  AgentSocket& operator=(const AgentSocket&) = delete;

  // `home`: the agent's directory, which no other agent uses.  Replaces an old socket there.
  Outcome open(const std::string& home);
  // -1: the socket cannot accept now; try again after pause_ms().
  int fd() const;
  int pause_ms() const;  // -1: no pause
  // Answers one client, if there is one.
  void answer(const std::function<nlohmann::json(const nlohmann::json&)>& reply);

 private:
  int fd_ = -1;
  std::int64_t paused_until_ms_ = 0;  // because the host has no free descriptors
};

}  // namespace crane::launcher
