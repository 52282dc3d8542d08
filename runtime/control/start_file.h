// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a starting node is.  It answers no requests while it fetches and unpacks a checkpoint,
// which takes minutes if that is large.  Meanwhile it keeps r<N>/starting.json,
// {"pid":7,"operations":[..]}, with the operations of a node's status, for crane-ctl and crane-run.
//
// Only the node with that pid makes the file, and removes it when it is done; a file of an ended
// process counts for nothing.
//
// Threads: plain functions.

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/control/progress.h"

namespace crane::control {

inline constexpr char kStartFile[] = "starting.json";

// An operation as an object of a node's status.
nlohmann::json to_json(const Operation& operation, int replica);
Operation operation_in(const nlohmann::json& json);

std::string start_text(pid_t node, int replica, const Operation& operation);
// The operations in the file of this replica's directory, if the process `node` made it; `node` 0:
// if the process that made it lives.  Sets `node`.  An empty list: there is no such file.
nlohmann::json operations_of_start(const std::string& replica_home, pid_t& node);

}  // namespace crane::control
