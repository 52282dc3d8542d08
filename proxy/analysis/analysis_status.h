// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an analysis replica tells of itself: in crane-ctl status, in its log and to crane-run.
//
// Threads: plain value.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace crane::node {

// Of the findings, the first so many are told in the status; the report has all.
inline constexpr std::size_t kFindingsShown = 8;

struct AnalysisStatus {
  std::string tool;
  std::uint64_t entry = 0;         // the last one that its server has run,
  std::uint64_t got = 0;           // of those that it got of the log
  std::uint64_t spooled = 0;       // bytes on disk
  std::uint64_t findings = 0;      // different ones
  std::uint64_t reports = 0;       // of the tool
  std::vector<std::string> first;  // of the findings, in one line each
  std::string report;              // path of what the tool said
  std::uint64_t digests = 0;       // of the group's, compared and equal,
  std::uint64_t equal_to = 0;      // the last of them at this entry
  std::uint64_t differs_at = 0;    // and where its server first was not as the group's; 0: nowhere
  std::string difference;
  std::string ended;  // why it goes no further; empty: it goes on
};

// What the engine says (follow.h).  Returns what is to be told once, in a line; or "".
std::string take_word(AnalysisStatus& status, const nlohmann::json& said);

nlohmann::json to_json(const AnalysisStatus& status);

}  // namespace crane::node
