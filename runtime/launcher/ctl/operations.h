// SPDX-License-Identifier: Apache-2.0
#pragma once
// The long operations of a group's replicas, for crane-ctl status and top: a bar, a percentage and
// the time left.
//
// Threads: pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crane::launcher {

// The operations in a node's status; one of them is "recovery" while the replica runs what it
// missed.
nlohmann::json operations_in(const nlohmann::json& status);

// A line for each of them:
// "replica 1: checkpoint  [=====>              ]  25 %, 1.0 GB of 4.0 GB, 3 s left  (packing)"
// `before`: begins each line, for example with the group's name.
std::string operations_text(const nlohmann::json& operations, const std::string& before = "");

}  // namespace crane::launcher
