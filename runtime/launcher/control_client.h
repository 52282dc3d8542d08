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

// kDrained: absent, because an operator drained the replica; kStarts: it runs, but never answered.
enum class Reply { kAnswer, kAbsent, kDenied, kSilent, kDrained, kStarts };

// Sends `request` and waits at most `timeout_ms` for the answer.
Reply ask_node(const std::string& socket, const std::string& request, int timeout_ms,
               std::string& answer);

// The replicas with a directory below <dir>/<group>: number and control socket.  `denied`: the
// directory may not be read.
std::map<int, std::string> find_replicas(const std::string& dir, const std::string& group,
                                         bool& denied);

}  // namespace crane::launcher
