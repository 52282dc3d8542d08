// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's end of the channel to crane-run (runtime/control/channel.h). runtime/control/requests.cc
// has the messages (channels run-to-node and node-to-run).
//
// A node outlives its crane-run.  The next crane-run, which takes over the group, connects to the
// node's control socket and sends {"do":"supervise"}.  From then on that connection is the channel.
// The node first sends the state that the new crane-run lacks, with {"t":"listener","port":P} and a
// descriptor for each listening socket (Supervisor::hand_over).
//
// Threads: one.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "dmt/base/result.h"
#include "runtime/control/channel.h"
#include "runtime/control/outbox.h"
#include "runtime/control/schema.h"

namespace crane::node {

// Parses a command of crane-run; nullopt (with a warning in node.log): unknown or wrong.
std::optional<control::Message> parse_command(const std::string& json);

// Answers to an operator's request at the control socket.  In a refusal, `error` is the kind for
// programs, and `message` is the reason.
std::string accepted(const std::string& message);
std::string refused(const std::string& error, const std::string& message);

class Control {
 public:
  // Takes over `fd`; -1: no channel, messages are dropped.
  explicit Control(int fd) noexcept : fd_(fd), outbox_(fd) {}
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int fd() const noexcept { return fd_; }
  // Never waits, so a stopped crane-run does not stop the node (OUTBOX-1).
  // `passed`: a descriptor to send with the message; -1: none.
  void send(const nlohmann::json& message, int passed = -1);
  // Whether messages wait for room.  Call flush() when fd() is writable or, if the socket refused
  // the messages, after Outbox::kAgainMs.
  bool waits() const noexcept { return outbox_.waits(); }
  bool refused() const noexcept { return outbox_.refused(); }
  void flush();
  // Closes the current connection and continues on `fd`.
  void replace(int fd) noexcept;
  // kBusy: no message is waiting.
  Result<control::ChannelMessage> receive() { return control::receive_message(fd_); }

 private:
  int fd_;
  control::Outbox outbox_;
};

}  // namespace crane::node
