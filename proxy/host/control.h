// SPDX-License-Identifier: Apache-2.0
#pragma once
// The channel between crane-run and a node: a SOCK_SEQPACKET socket, one JSON object per message,
// at most one descriptor with it.
//
//   node -> run   {"t":"ready"} {"t":"role","role":R,"view":V} {"t":"listen","port":P,"addr":A,
//                 "backlog":N,"bind":B: a bind waits to know}
//                 {"t":"server","pid":P} {"t":"exit","status":N,"reason":S}
//                 {"t":"fatal","code":N,"message":S} {"t":"status",...}
//                 {"t":"analysis","text":S}: news of an analysis replica, for people
//   run -> node   {"t":"listener","port":P} + fd   {"t":"listen_failed","port":P,"message":S,
//                 "error":errno}
//                 {"t":"not_published","port":P}: of the server's own, a bind that waits succeeds
//                 {"t":"stop"}  {"t":"status"}  {"t":"signal","signo":N}
//                 {"t":"member","change":"add"|"remove","replica":N}
//
// A node outlives its crane-run.  The next one, which takes the group over, connects to the node's
// control socket and asks {"do":"supervise"}: from then on that connection is the channel, and the
// node says first what the new crane-run does not know, with {"t":"listener","port":P} + fd for
// each listening socket (node_supervise.cc).
//
// Threads: one.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dmt/base/result.h"
#include "runtime/control/outbox.h"

namespace crane::node {

struct ControlMessage {
  std::string text;  // JSON; empty: the other side is gone
  int fd = -1;       // the receiver's to close
};

// What crane-run tells the node.  Fields that are missing or of a wrong kind have their defaults.
struct Command {
  std::string type;  // empty: not understood
  std::uint16_t port = 0;
  std::string message;
  std::uint32_t signo = 0;  // 1..64, or 0
  std::uint32_t pid = 0;
  int error = 0;  // errno
};
Command parse_command(const std::string& json);

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
