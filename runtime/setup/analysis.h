// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an analysis replica needs of the machine: valgrind, and a directory of its own.
//
// Threads: plain functions.

#include <string>

#include "runtime/setup/messages.h"

namespace crane::setup {

struct Valgrind {
  std::string launcher;  // what users call
  std::string library;   // directory of its tools
  std::string tool;      // the program that runs the server
};
// False: the tool (memcheck, helgrind) is not installed.
bool find_valgrind(const std::string& tool, Valgrind& found);

// A directory for what clients sent and what was found, which no other user can look into or has
// put there.
Outcome make_analysis_directory(const std::string& path);

}  // namespace crane::setup
