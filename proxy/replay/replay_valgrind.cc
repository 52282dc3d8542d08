// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay_valgrind.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>

#include "proxy/host/segment.h"
#include "runtime/setup/analysis.h"

namespace crane::node {
namespace {

constexpr const char* kFile = "/valgrind.supp";

// Only the turn holder uses Crane's memory, so races in it are not reported.
constexpr const char* kSuppressions = R"({
   in libcrane.so
   Helgrind:Race
   obj:*/libcrane.so
}
{
   by libc for libcrane.so
   Helgrind:Race
   obj:*
   obj:*/libcrane.so
}
{
   locks as libcrane.so uses them
   Helgrind:Misc
   ...
   obj:*/libcrane.so
}
{
   at the end of threads
   Helgrind:Race
   ...
   fun:__nptl_deallocate_tsd*
}
)";

constexpr const char* kReports[] = {
    "Possible data race",   "Invalid ",       "Conditional jump",
    "Use of uninitialised", "Syscall param ", "Source and dest",
    "Mismatched free",      "Argument ",      "lock order",
};

bool is_report(const std::string& line) {
  const auto text = line.find("== ");
  return text != std::string::npos && begins_report(std::string_view(line).substr(text + 3));
}

}  // namespace

bool begins_report(std::string_view log_line) {
  return std::any_of(std::begin(kReports), std::end(kReports),
                     [log_line](const char* head) { return log_line.starts_with(head); });
}

// Starts the tool itself and not valgrind's launcher, which would load libcrane.so.
Outcome put_in_valgrind(const std::string& tool, Config& config, std::string& why) {
  setup::Valgrind found;
  if (!setup::find_valgrind(tool, found)) {
    why = "valgrind (" + tool + "): not installed; install the package valgrind";
    return Error{Code::kNotFound, 0, "valgrind"};
  }
  const std::string beside = config.replica_shm_dir() + kFile;
  if (!(std::ofstream(beside) << kSuppressions).flush()) {
    why = beside + ": cannot be written";
    return system_error("write");
  }
  const bool bound = config.container || ::geteuid() == 0;
  const std::string there = bound ? std::string(kServerDirectory) + kFile : beside;
  // An allocator that the server brings takes turns (jemalloc's mutexes), so it is not replaced.
  config.args.insert(config.args.begin(),
                     {"--tool=" + tool, "--suppressions=" + there,
                      "--soname-synonyms=somalloc=nouserintercepts", config.program});
  config.program = found.tool;
  config.env.push_back("VALGRIND_LAUNCHER=" + found.launcher);
  config.env.push_back("VALGRIND_LIB=" + found.library);
  return Done{};
}

ValgrindReports valgrind_reports(const Config& config) {
  ValgrindReports reports;
  std::ifstream log(config.replica_dir() + "/server.log");
  for (std::string line; std::getline(log, line);) {
    if (!line.starts_with("==")) continue;
    reports.text += line + "\n";
    reports.count += is_report(line);
  }
  return reports;
}

}  // namespace crane::node
