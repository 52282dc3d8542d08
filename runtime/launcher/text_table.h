// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON objects as lines of a table, for crane-ctl.
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

// What stands under `key`; "-" for nothing, null and negative numbers.
std::string cell(const nlohmann::json& row, const char* key);
// A line of titles, then one for each of `lines`; columns that no line fills are left out.
std::string table(std::span<const Column> columns, const nlohmann::json& lines);

}  // namespace crane::launcher
