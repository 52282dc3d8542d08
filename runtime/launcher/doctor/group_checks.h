// SPDX-License-Identifier: Apache-2.0
#pragma once
// Judges the reports of a running group's nodes, in the same form as checks.h judges a machine.
//
// Threads: pure functions.

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/launcher/doctor/finding.h"

namespace crane::launcher {

// `summary`: the output of crane-ctl status -o json (runtime/control/answers.h, document `group`).
std::vector<Finding> check_group(const nlohmann::json& summary);

}  // namespace crane::launcher
