// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a replayed server in valgrind (memcheck, helgrind).  libcrane.so takes the turn for every
// operation as usual.  The tool observes the libc primitives (mutexes, threads) that libcrane.so
// uses meanwhile, but not the turns.  So threads that are ordered only by turns count as unordered.
//
// Threads: plain functions.

#include <string>
#include <string_view>

#include "dmt/base/result.h"
#include "proxy/host/config.h"

namespace crane::node {

// Makes valgrind run the server of `config`.  kNotFound: `why` names the missing program.
Outcome put_in_valgrind(const std::string& tool, Config& config, std::string& why);

// Whether `log_line`, a line without the prefix of its process, begins a report; helgrind's other
// sections describe threads.
bool begins_report(std::string_view log_line);

// The tool's reports, which the server wrote to its log, and their number.
struct ValgrindReports {
  std::string text;
  int count = 0;
};
ValgrindReports valgrind_reports(const Config& config);

}  // namespace crane::node
