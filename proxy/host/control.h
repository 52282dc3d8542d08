// SPDX-License-Identifier: Apache-2.0
#pragma once
// The channel between crane-run and a node: a SOCK_SEQPACKET socket, one JSON object per message,
// at most one descriptor with it: the channels run-to-node and node-to-run of
// runtime/control/requests.cc.
//
// A node outlives its crane-run.  The next one, which takes the group over, connects to the node's
// control socket and asks {"do":"supervise"}: from then on that connection is the channel, and the
// node says first what the new crane-run does not know, with {"t":"listener","port":P} + fd for
// each listening socket (Supervisor::hand_over).
//
// Threads: one.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "dmt/base/result.h"
#include "runtime/control/outbox.h"
#include "runtime/control/schema.h"

namespace crane::node {

struct ControlMessage {
  std::string text;  // JSON; empty: the other side is gone
  int fd = -1;       // the receiver's to close
};

// What crane-run asks for; nullopt: no such message, which node.log says.
std::optional<control::Message> parse_command(const std::string& json);

// What an operator who asked at the control socket is told.  Of a refusal `error` is the kind, for
// programs, and the message says why.
std::string accepted(const std::string& message);
std::string refused(const std::string& error, const std::string& message);

class Control {
 public:
  // Takes over `fd`; -1: there is none, messages are dropped.
  explicit Control(int fd) noexcept : fd_(fd), outbox_(fd) {}
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int fd() const noexcept { return fd_; }
  // Never waits: a crane-run that is stopped stops no node (OUTBOX-1).
  // `passed`: a descriptor that goes with it; -1: none.
  void send(const nlohmann::json& message, int passed = -1);
  // Messages wait for room: flush() when fd() is writable or, where the socket has refused them,
  // after Outbox::kAgainMs.
  bool waits() const noexcept { return outbox_.waits(); }
  bool refused() const noexcept { return outbox_.refused(); }
  void flush();
  // The other side is gone, or somebody else; closes what there was.
  void replace(int fd) noexcept;
  // kBusy: nothing is there now.
  Result<ControlMessage> receive();

 private:
  int fd_;
  control::Outbox outbox_;
};

}  // namespace crane::node
