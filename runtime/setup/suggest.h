// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a user meant who mistyped a word.
//
// Threads: pure functions.

#include <string>
#include <vector>

namespace crane::setup {

// The one of `known` that is nearest to `word`; empty: none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

// "unknown command 'stauts'; did you mean 'status'?", or which ones there are.
std::string unknown_command(const std::string& word, const std::vector<std::string>& known);

}  // namespace crane::setup
