// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of option_table.def as words of a command line.
//
// Threads: plain function.

#include <vector>

#include "runtime/setup/command_line.h"
#include "runtime/setup/option_table.h"

namespace crane::setup {

// The words; they write into `options`.  REQUIRES: `options` outlives the parsing.
std::vector<Word> option_words(NodeOptions& options);

}  // namespace crane::setup
