// SPDX-License-Identifier: Apache-2.0
#include "proxy/analysis/analysis_status.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace crane::node {
namespace {

std::uint64_t number(const nlohmann::json& said, const char* name) {
  const auto found = said.find(name);
  const bool whole = found != said.end() && found->is_number_integer();
  return whole && *found >= 0 ? found->get<std::uint64_t>() : 0;
}

std::string text(const nlohmann::json& said, const char* name) {
  const auto found = said.find(name);
  return found != said.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string take_word(AnalysisStatus& status, const nlohmann::json& said) {
  const std::string what = text(said, "t");
  if (what == "progress") {
    status.entry = number(said, "entry");
    status.findings = number(said, "findings");
    status.reports = number(said, "reports");
    status.digests = number(said, "digests");
    status.equal_to = number(said, "equal_to");
    return "";
  }
  if (what == "finding") {
    status.findings = number(said, "number");
    const std::string found = text(said, "text");
    if (status.first.size() < kFindingsShown) status.first.push_back(found);
    return fmt::format("{} finding {}: {}; report: {}", status.tool, status.findings, found,
                       status.report);
  }
  if (what == "differs") {
    status.differs_at = number(said, "index");
    status.difference = text(said, "text");
    return fmt::format(
        "in {} the server's behaviour differs from the group's from entry {} on ({}), because "
        "addresses and the processor's clock differ; it still gets the same inputs, and the "
        "findings concern this run",
        status.tool, status.differs_at, status.difference);
  }
  if (what == "end") {
    const std::string why = text(said, "text");
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
