// SPDX-License-Identifier: Apache-2.0
#pragma once
// The status of an analysis replica: in crane-ctl status, in its log and for crane-run.
//
// Threads: plain value.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace crane::node {

// The status contains at most this many findings; the report contains all.
inline constexpr std::size_t kFindingsShown = 8;

struct AnalysisStatus {
  std::string tool;
  std::uint64_t entry = 0;         // the last one that its server has run
  std::uint64_t got = 0;           // the last one that it got from the log
  std::uint64_t spooled = 0;       // bytes on disk
  std::uint64_t findings = 0;      // different ones
  std::uint64_t reports = 0;       // of the tool
  std::vector<std::string> first;  // the first findings, one line each
  std::string report;              // path of the tool's reports
  std::uint64_t digests = 0;       // of the group, compared and equal
  std::uint64_t equal_to = 0;      // entry of the last equal digest
  std::uint64_t differs_at = 0;    // entry of the first difference from the group; 0: none
  std::string difference;
  std::string ended;  // why it stopped; empty: it runs
};

// Takes a message of the engine (follow.h).  Returns a line to report once, or "".
std::string apply_message(AnalysisStatus& status, const nlohmann::json& message);

nlohmann::json to_json(const AnalysisStatus& status);

}  // namespace crane::node
