// SPDX-License-Identifier: Apache-2.0
#pragma once
// What crane-run and crane-ctl print with --version.
//
// Threads: plain function.

#include <string>

namespace crane::launcher {

std::string version_of_launcher();

}  // namespace crane::launcher
