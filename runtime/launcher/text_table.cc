// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace crane::launcher {

using Json = nlohmann::json;
using Row = std::vector<std::string>;

std::string cell(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return "-";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number() && found->get<std::int64_t>() < 0) return "-";
  return found->dump();
}

std::string table(std::span<const Column> columns, const Json& lines) {
  std::vector<Row> rows(1);
  for (const Column& c : columns) rows[0].push_back(c.title);
  for (const Json& line : lines) {
    rows.emplace_back();
    for (const Column& c : columns) rows.back().push_back(cell(line, c.key));
  }
  std::vector<std::size_t> widths(columns.size(), 0);
  std::vector<bool> shown(columns.size(), false);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      if (&row != &rows[0] && row[i] != "-") shown[i] = true;
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!shown[i]) continue;
      line += columns[i].right ? fmt::format("  {:>{}}", row[i], widths[i])
                               : fmt::format("  {:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace crane::launcher
