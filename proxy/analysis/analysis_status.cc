// SPDX-License-Identifier: Apache-2.0
#include "proxy/analysis/analysis_status.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace crane::node {
namespace {

std::uint64_t number(const nlohmann::json& message, const char* name) {
  const auto found = message.find(name);
  const bool is_integer = found != message.end() && found->is_number_integer();
  return is_integer && *found >= 0 ? found->get<std::uint64_t>() : 0;
}

std::string text(const nlohmann::json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string apply_message(AnalysisStatus& status, const nlohmann::json& message) {
  const std::string what = text(message, "t");
  if (what == "progress") {
    status.entry = number(message, "entry");
    status.findings = number(message, "findings");
    status.reports = number(message, "reports");
    status.digests = number(message, "digests");
    status.equal_to = number(message, "equal_to");
    return "";
  }
  if (what == "finding") {
    status.findings = number(message, "number");
    const std::string found = text(message, "text");
    if (status.first.size() < kFindingsShown) status.first.push_back(found);
    return fmt::format("{} finding {}: {}; report: {}", status.tool, status.findings, found,
                       status.report);
  }
  if (what == "differs") {
    status.differs_at = number(message, "index");
    status.difference = text(message, "text");
    return fmt::format(
        "in {} the server's behaviour differs from the group's from entry {} on ({}), because "
        "addresses and the processor's clock differ; it still gets the same inputs, and the "
        "findings concern this run",
        status.tool, status.differs_at, status.difference);
  }
  if (what == "end") {
    const std::string why = text(message, "text");
    status.ended = why.empty()
                       ? fmt::format("it has run all stored entries, up to entry {}", status.entry)
                       : why;
    return status.ended;
  }
  return "";
}

nlohmann::json to_json(const AnalysisStatus& s) {
  nlohmann::json differs;
  if (!s.difference.empty()) differs = {{"index", s.differs_at}, {"text", s.difference}};
  return {{"tool", s.tool},
          {"entry", s.entry},
          {"got", s.got},
          {"behind", s.got > s.entry ? s.got - s.entry : 0},
          {"spooled_bytes", s.spooled},
          {"findings", s.findings},
          {"reports", s.reports},
          {"first_findings", s.first},
          {"report", s.report},
          {"digests_equal", s.digests},
          {"equal_to", s.equal_to},
          {"differs", differs},
          {"ended", s.ended}};
}

}  // namespace crane::node
