// SPDX-License-Identifier: Apache-2.0
#pragma once
// An analysis replica's needs on the machine: valgrind, and a private directory.
//
// Threads: plain functions.

#include <string>

#include "runtime/setup/messages.h"

namespace crane::setup {

struct Valgrind {
  std::string launcher;  // the program that users start
  std::string library;   // directory of valgrind's tools
  std::string tool;      // the program that runs the server
};
// Returns false if the tool (memcheck, helgrind) is not installed.
bool find_valgrind(const std::string& tool, Valgrind& found);

// Makes a directory for the clients' input and the findings.  Fails if another user owns the
// directory or can read it.
Outcome make_analysis_directory(const std::string& path);

}  // namespace crane::setup
