// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the doctor found: one Finding for each thing that a group needs, and all of them as text for
// people and as JSON.
//
// Threads: plain values and functions.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crane::launcher {

// By gravity.  kMissing: a group cannot run here.  The numbers are the doctor's exit status.
enum class Verdict : int { kOk = 0, kLimited = 1, kMissing = 2 };
const char* name(Verdict verdict);  // "ok", "limited", "missing"

struct Finding {
  std::string area;  // what was looked at, as "clock" or "port 8080"
  Verdict verdict = Verdict::kOk;
  std::string seen;
  std::string costs, mend;  // empty where all is well
  // The numbers in `seen`; the end of a name is its unit: _us, _mb, ..; without one it is a count.
  nlohmann::json measures = nlohmann::json::object();
};

inline constexpr char kThisMachine[] = "this machine";

struct Report {
  std::string subject;  // kThisMachine, or the name of a group
  std::vector<Finding> findings;

  Verdict verdict() const;  // the gravest
  // "this machine can run groups; 2 things are limited"
  std::string headline() const;
  // The headline, then a line for each finding, with what it costs and how to mend it below.
  std::string text() const;
  // As `crane-ctl schema status` has it (runtime/control/answers.h, document `doctor`).
  nlohmann::json json() const;
};

}  // namespace crane::launcher
