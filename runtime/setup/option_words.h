// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of option_table.def as words of a command line.
//
// Threads: plain function.

#include "runtime/setup/option_table.h"

namespace CLI {
class App;
}

namespace crane::setup {

// `options` takes what is typed, and must outlive the parsing.
void declare_options(CLI::App& app, NodeOptions& options);

}  // namespace crane::setup
