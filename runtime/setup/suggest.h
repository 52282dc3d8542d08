// SPDX-License-Identifier: Apache-2.0
#pragma once
// Suggestions for mistyped words.
//
// Threads: pure functions.

#include <string>
#include <vector>

namespace crane::setup {

// The word of `known` that is nearest to `word`; empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

// "unknown command 'stauts'; did you mean 'status'?", or a list of all commands.
std::string unknown_command(const std::string& word, const std::vector<std::string>& known);

}  // namespace crane::setup
