// SPDX-License-Identifier: Apache-2.0
#pragma once
// What profiles ask of a command line: `args` is what the user typed after the program.
//
// Threads: plain functions.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace crane::setup {

using Words = std::vector<std::string>;

// One of `words` is among them.
inline bool has(const Words& args, std::initializer_list<const char*> words) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) { return arg == w; });
  });
}

// One of them begins with one of `starts`.
inline bool any_begins(const Words& args, std::initializer_list<const char*> starts) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(starts.begin(), starts.end(),
                       [&](const char* start) { return arg.rfind(start, 0) == 0; });
  });
}

}  // namespace crane::setup
