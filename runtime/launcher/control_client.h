// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl's side of a node's control socket, <dir>/<group>/r<i>/control.sock (SOCK_SEQPACKET):
// one JSON request, one JSON answer.  {"do":"status"} is answered with the status, everything else
// with
// {"ok":true,...} or {"ok":false,"error":WORD,"message":TEXT}.
//
// Threads: plain functions.

#include <map>
#include <string>
#include <vector>

namespace crane::launcher {

// kDrained: absent, because an operator asked for it; kStarts: its node runs, and has not come to
// answer for the first time.
enum class Reply { kAnswer, kAbsent, kDenied, kSilent, kDrained, kStarts };

// Sends `request`, waits at most `timeout_ms` for the answer.
Reply ask_node(const std::string& socket, const std::string& request, int timeout_ms,
               std::string& answer);

// The replicas with a directory below <dir>/<group>: number and control socket; `denied`: it may
// not be read.
std::map<int, std::string> find_replicas(const std::string& dir, const std::string& group,
                                         bool& denied);

}  // namespace crane::launcher
