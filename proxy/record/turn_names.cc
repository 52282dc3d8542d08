// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/turn_names.h"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>

namespace crane::proxy {
namespace {
constexpr std::uint16_t kMainProcess = 1;
}  // namespace

void TurnNames::set_operations(std::string_view names) {
  operations_.clear();
  std::istringstream text{std::string(names)};
  for (std::string name; std::getline(text, name, '\0');) operations_.push_back(name);
}

std::string TurnNames::operation(std::uint32_t code) const {
  if (code == kOperationLeave) return "thread leaves";
  if (code == kOperationYield) return "thread gives way";
  const bool known = code < operations_.size() && !operations_[code].empty();
  return known ? operations_[code] : "operation " + std::to_string(code);
}

std::string TurnNames::place(std::uint64_t address) const {
  std::istringstream lines(maps_);
  for (std::string line; std::getline(lines, line);) {
    unsigned long long start = 0, end = 0, offset = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %llx %*s %*s %n", &start, &end, &offset, &path) <
            3 ||
        address < start || address >= end || path == 0) {
      continue;
    }
    const std::string file = line.substr(static_cast<std::size_t>(path));
    if (file.empty()) return "";
    const std::uint64_t at = address - start + offset;
    // The call is before its return address, which may belong to another function.
    const std::string function = at == 0 ? "" : function_at(file, at - 1);
    return fmt::format("{}+0x{:x}{}", file, at, function.empty() ? "" : " (" + function + ")");
  }
  return "";
}

std::string TurnNames::text(const TurnRecord& t) const {
  std::string text = fmt::format("thread {} of process {}: {} = {}", t.slot, t.process,
                                 operation(t.operation), static_cast<std::int64_t>(t.result));
  if (t.object != 0) text += fmt::format(", object {:x}", t.object);
  const bool known = t.caller != 0 && t.process == kMainProcess;  // LIVE-V5
  const std::string from = known ? place(t.caller) : "";
  return from.empty() ? text : text + ", called from " + from;
}

}  // namespace crane::proxy
