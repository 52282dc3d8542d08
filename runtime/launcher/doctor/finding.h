// SPDX-License-Identifier: Apache-2.0
#pragma once
// The doctor's report: one Finding for each thing that a group needs, printed as text or as JSON.
//
// Threads: plain values and functions.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crane::launcher {

// In order of gravity.  kMissing: a group cannot run here.  The value is the doctor's exit status.
enum class Verdict : int { kOk = 0, kLimited = 1, kMissing = 2 };
const char* name(Verdict verdict);  // "ok", "limited", "missing"

struct Finding {
  std::string area;  // the thing that was checked, such as "clock" or "port 8080"
  Verdict verdict = Verdict::kOk;
  std::string seen;
  std::string costs, mend;  // empty if the verdict is kOk
  // The numbers in `seen`.  A name ends with its unit: _us, _mb, ...; without a unit, it is a
  // count.
  nlohmann::json measures = nlohmann::json::object();
};

inline constexpr char kThisMachine[] = "this machine";

struct Report {
  std::string subject;  // kThisMachine, or the name of a group
  std::vector<Finding> findings;

  Verdict verdict() const;  // the gravest of the findings
  // "this machine can run groups; 2 things are limited"
  std::string headline() const;
  // The headline, then a line for each finding, followed by its costs and the way to fix it.
  std::string text() const;
  // The document `doctor` of `crane-ctl schema status` (runtime/control/answers.h).
  nlohmann::json json() const;
};

}  // namespace crane::launcher
