// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the nodes of a running group say of themselves, judged as a machine is (checks.h).
//
// Threads: pure functions.

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/launcher/doctor/finding.h"

namespace crane::launcher {

// `summary`: as crane-ctl status -o json has it (runtime/control/answers.h, document `group`).
std::vector<Finding> check_group(const nlohmann::json& summary);

}  // namespace crane::launcher
