// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data that crane-run sends to one node: the fields of node_fields.def and the options of
// option_table.def.  To add a field, write a row there and use it.
//
// Threads: plain values and functions.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "runtime/setup/bind.h"
#include "runtime/setup/option_table.h"
#include "runtime/setup/soft_barrier.h"

namespace crane::setup {

using Secret = std::array<std::uint64_t, 4>;  // in JSON: 64 hexadecimal digits

struct NodeFields : NodeOptions {
#define FIELD(type, name, key, initial, kept) type name = initial;
#include "runtime/setup/node_fields.def"
#undef FIELD
};

// `server_only`: writes only the options of [server], which determine how the server runs.
void write_options(const NodeOptions& options, nlohmann::json& json, bool server_only = false);

// Reads the options that `json` holds; the others keep their values.  Returns the key of the first
// option that exceeds its limits, or nullptr.  Throws nlohmann::json::exception if a value has a
// wrong type.
const char* read_options(const nlohmann::json& json, NodeOptions& options);

enum class Fields : std::uint8_t { kAll, kKept };  // kKept: only fields that a recording holds
void write_fields(const NodeFields& fields, Fields which, nlohmann::json& json);

// Reads the fields that `json` holds; the others keep their values, and unknown keys are ignored.
// Returns the key of the first field with an invalid value, or nullptr.  Throws
// nlohmann::json::exception if a value has a wrong type.
const char* read_fields(const nlohmann::json& json, NodeFields& fields);

// Returns false for an unknown name.
bool mode_of(const std::string& name, dmt::Mode& mode);
// Returns false if `hex` is not 64 hexadecimal digits.
bool secret_of(const std::string& hex, Secret& secret);

}  // namespace crane::setup
