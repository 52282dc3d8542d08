// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl's side of a node's control socket, <dir>/<group>/r<i>/control.sock (SOCK_SEQPACKET):
// one JSON request, one JSON answer.  The answer to {"do":"status"} is the status; every other
// answer is {"ok":true,...} or {"ok":false,"error":WORD,"message":TEXT}.
//
// Threads: plain functions.

#include <map>
#include <string>
#include <vector>

namespace crane::launcher {

enum class Reply {
  kAnswer,
  kAbsent,  // no node runs there
  kDenied,  // this user may not ask it
  kSilent,
  kDrained,  // absent, because an operator drained the replica
  kStarts,   // it runs, but never answered
  // Only over links to other hosts (ctl/operator_link.h):
  kUnreachable,   // the host's name is not known, or the network does not lead there
  kOtherSecret,   // the node holds another secret
  kOtherReplica,  // the node is another replica, or not of this group
  kLost,          // the node ended the link after it may have got the request
};
// Whether this machine's operator cannot ask the node, which says nothing about the node itself.
constexpr bool is_cut_off(Reply reply) {
  return reply == Reply::kUnreachable || reply == Reply::kOtherSecret ||
         reply == Reply::kOtherReplica;
}

// Sends `request` and waits at most `timeout_ms` for the answer.
Reply ask_node(const std::string& socket, const std::string& request, int timeout_ms,
               std::string& answer);

// The replicas with a directory below <dir>/<group>: number and control socket.  `denied`: the
// directory may not be read.
std::map<int, std::string> find_replicas(const std::string& dir, const std::string& group,
                                         bool& denied);

}  // namespace crane::launcher
