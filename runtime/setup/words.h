// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queries of profiles on a command line.  `args` are the user's arguments for the program.
//
// Threads: plain functions.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace crane::setup {

using Words = std::vector<std::string>;

// Whether `args` contains one of `words`.
inline bool has(const Words& args, std::initializer_list<const char*> words) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) { return arg == w; });
  });
}

// Whether one of `args` begins with one of `starts`.
inline bool any_begins(const Words& args, std::initializer_list<const char*> starts) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(starts.begin(), starts.end(),
                       [&](const char* start) { return arg.rfind(start, 0) == 0; });
  });
}

}  // namespace crane::setup
