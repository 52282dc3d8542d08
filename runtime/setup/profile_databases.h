// SPDX-License-Identifier: Apache-2.0
#pragma once
// Profiles of the database servers (profile.h).  `args` are the user's arguments for the program.
//
// Threads: plain functions.

#include <string>
#include <vector>

#include "runtime/setup/profile.h"

namespace crane::setup {

Profile mariadbd(const std::vector<std::string>& args);
Profile postgres(const std::vector<std::string>& args);
Profile slapd(const std::vector<std::string>& args);

}  // namespace crane::setup
