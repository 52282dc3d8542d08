// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of option_table.def in the configuration of a node: crane-run writes them, the node
// reads them.
//
// Threads: plain functions.

#include <nlohmann/json_fwd.hpp>

#include "runtime/setup/option_table.h"

namespace crane::setup {

// `server_only`: writes only the options of [server], which determine how the server runs.
void write_options(const NodeOptions& options, nlohmann::json& json, bool server_only = false);

// Reads the options that `json` holds; the others keep their values.  Returns the key of the first
// option that exceeds its limits, or nullptr.  Throws nlohmann::json::exception if a value has a
// wrong type.
const char* read_options(const nlohmann::json& json, NodeOptions& options);

}  // namespace crane::setup
