// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of option_table.def in the configuration of a node: crane-run writes them, the node
// reads them.
//
// Threads: plain functions.

#include <nlohmann/json_fwd.hpp>

#include "runtime/setup/option_table.h"

namespace crane::setup {

// `server_only`: those of [server], which say how it runs.
void write_options(const NodeOptions& options, nlohmann::json& json, bool server_only = false);

// Keeps what `json` does not hold.  The key of the first option that is out of its limits; nullptr:
// none is.  Throws nlohmann::json::exception where a value has another type.
const char* read_options(const nlohmann::json& json, NodeOptions& options);

}  // namespace crane::setup
