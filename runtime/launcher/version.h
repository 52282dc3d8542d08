// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output of crane-run and crane-ctl with --version.
//
// Threads: plain function.

#include <string>

namespace crane::launcher {

std::string version_of_launcher();

}  // namespace crane::launcher
