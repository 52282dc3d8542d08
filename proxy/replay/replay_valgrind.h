// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replayed server inside valgrind: memcheck, helgrind.  libcrane.so takes the turn for every
// operation as ever, and what it takes from libc then (mutexes, threads) is what the tool watches;
// the turns themselves it does not see, so that threads which only take turns after each other
// still count as unordered.
//
// Threads: plain functions.

#include <string>
#include <string_view>

#include "dmt/base/result.h"
#include "proxy/host/config.h"

namespace crane::node {

// Makes the server of `config` one of valgrind's.  kNotFound: `why` says what is not installed.
Outcome put_in_valgrind(const std::string& tool, Config& config, std::string& why);

// The first line of a report, without the process it begins with; helgrind's other sections say who
// the threads are.
bool begins_report(std::string_view said);

// What the tool said of the server, which wrote it to its log, and how many reports are in it.
struct ValgrindReports {
  std::string text;
  int count = 0;
};
ValgrindReports valgrind_reports(const Config& config);

}  // namespace crane::node
