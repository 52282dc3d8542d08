// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/operations.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/control/progress.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/text_table.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;
using control::object_in, control::text_in;

// How many of `parts` parts are done.  REQUIRES: the whole is known.
std::size_t done_of(const control::Progress& p, std::size_t parts) {
  const double share = static_cast<double>(std::min(p.done, p.of)) / static_cast<double>(p.of);
  return static_cast<std::size_t>(share * static_cast<double>(parts));
}

// "[=====>              ]"
std::string bar(const control::Progress& p) {
  constexpr std::size_t kWidth = 20;
  const std::size_t full = done_of(p, kWidth);
  std::string text = std::string(full, '=') + (full < kWidth ? ">" : "");
  text.resize(kWidth, ' ');
  return "[" + text + "]";
}

std::string line_of(const Json& operation) {
  const control::Progress p = control::progress_in(operation);
  const auto unit = text_in(operation, "unit") == control::name(control::Unit::kEntries)
                        ? control::Unit::kEntries
                        : control::Unit::kBytes;
  const std::string step = text_in(operation, "step");
  std::string text =
      "replica " + cell(operation, "replica") + ": " + text_in(operation, "operation");
  if (p.of > 0) {
    text += "  " + bar(p) + "  ";
    if (unit == control::Unit::kEntries) text += std::to_string(done_of(p, 100)) + " %, ";
    text += control::text_of(p, unit);
  }
  return text + (step.empty() ? "" : "  (" + step + ")");
}

}  // namespace

Json operations_in(const Json& status) {
  Json all = control::list_in(status, "operations");
  if (!all.is_array()) all = Json::array();
  const Json& recovery = object_in(object_in(status, "readiness"), "progress");
  if (recovery.empty()) return all;
  Json one = recovery;
  one["operation"] = "recovery";
  one["replica"] = status.value("replica", Json());
  one["step"] = "runs what it missed";
  one["unit"] = control::name(control::Unit::kEntries);
  all.push_back(std::move(one));
  return all;
}

std::string operations_text(const Json& operations, const std::string& before) {
  std::string text;
  for (const Json& one : operations) text += before + line_of(one) + "\n";
  return text;
}

}  // namespace crane::launcher
