// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prints JSON objects as lines of a table, for crane-ctl.
//
// Threads: pure functions.

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace crane::launcher {

struct Column {
  const char* title;
  const char* key;
  bool right;
};

// The value of `key`; "-" if it is missing, null or a negative number.
std::string cell(const nlohmann::json& row, const char* key);
// A line of titles, then one line for each of `lines`.  Columns that no line fills are left out.
std::string table(std::span<const Column> columns, const nlohmann::json& lines);

}  // namespace crane::launcher
