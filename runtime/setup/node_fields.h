// SPDX-License-Identifier: Apache-2.0
#pragma once
// What crane-run tells one node: rows of node_fields.def, and the options of option_table.def.  To
// add one, write a row there and use the field.
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

enum class Fields : std::uint8_t { kAll, kKept };  // the latter: those that a recording holds
void write_fields(const NodeFields& fields, Fields which, nlohmann::json& json);

// Keeps what `json` does not hold; unknown keys are ignored.  The key of the first field that holds
// no such value; nullptr: none does.  Throws nlohmann::json::exception where a value has another
// type.
const char* read_fields(const nlohmann::json& json, NodeFields& fields);

// false: there is no such word.
bool mode_of(const std::string& name, dmt::Mode& mode);
// false: not 64 hexadecimal digits.
bool secret_of(const std::string& hex, Secret& secret);

}  // namespace crane::setup
