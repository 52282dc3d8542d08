// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where crane-ctl asks the agent of its host: <dir>/<group>/h<N>/agent.sock (SOCK_SEQPACKET), which
// only the agent's user can reach.  One JSON object each way, as at a node's control socket:
//   {"do":"state"}    {"ok":true,"message":S,"node":true}   node: one runs; S: why it did not come
//                                                           back
//   {"do":"resume","forget":false}                          a drained replica is started
// and {"ok":false,"error":WORD,"message":S}.
//
// Threads: one.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/setup/messages.h"
#include "runtime/supervise/step.h"

namespace crane::launcher {

// In the agent's directory.
inline constexpr char kAgentSocket[] = "agent.sock";

nlohmann::json answer_of(const supervise::Answer& answer);

class AgentSocket {
 public:
  AgentSocket() = default;
  ~AgentSocket();
  AgentSocket(const AgentSocket&) = delete;
  AgentSocket& operator=(const AgentSocket&) = delete;

  // `home`: the agent's directory, which no other one uses; a socket there is taken away.
  Outcome open(const std::string& home);
  // -1: nothing can be accepted now, look again after pause_ms().
  int fd() const;
  int pause_ms() const;  // -1: there is none
  // Answers one who stands there, if somebody does.
  void answer(const std::function<nlohmann::json(const nlohmann::json&)>& reply);

 private:
  int fd_ = -1;
  std::int64_t paused_until_ms_ = 0;  // descriptors are missing
};

}  // namespace crane::launcher
