// SPDX-License-Identifier: Apache-2.0
#pragma once
// The next start of an absent replica, for crane-ctl: returning.json in its directory.
//   {"why", "attempts", "next_unix_ms", "command"}
//
// Threads: plain functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/supervise/step.h"

namespace crane::launcher {

void write_notice(const std::string& replica_home, const supervise::WriteNotice& notice);
void remove_notice(const std::string& replica_home);
// The notice with "next_in_ms"; null: none.
nlohmann::json read_notice(const std::string& replica_home);

}  // namespace crane::launcher
