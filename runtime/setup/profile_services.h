// SPDX-License-Identifier: Apache-2.0
#pragma once
// Profiles of servers that are neither web servers nor databases (profile.h).  `args` are the
// user's arguments for the program.
//
// Threads: plain functions.

#include <string>
#include <vector>

#include "runtime/setup/profile.h"

namespace crane::setup {

Profile clamd(const std::vector<std::string>& args);
Profile gerbera(const std::vector<std::string>& args);

}  // namespace crane::setup
