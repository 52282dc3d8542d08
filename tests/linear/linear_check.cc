// SPDX-License-Identifier: Apache-2.0
// linear-check HISTORY [--faults FILE]: judges a history (tests/linear/history.h), key by key.
//
// FILE contains a line `NANOSECONDS WHAT` per fault; the output then has the number of operations
// in progress at each.  After the windows of violations the output has lines `NAME VALUE...` for
// programs:
//   fault NANOSECONDS IN_PROGRESS WHAT
//   answered N | open N | refused N | keys REGISTERS COUNTERS LISTS | steps N
//   violation_after ANSWERS FAULTS      if there is one: the numbers before its first wrong answer
//   verdict ok|violation|unknown
// Exit: 0 ok, 1 violation, 2 the history cannot be read, 3 unknown, which is no pass.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/setup/command_line.h"
#include "tests/linear/report.h"

namespace {

using namespace crane::linear;
using crane::setup::CommandLine;

constexpr std::size_t kWindowsShown = 3;

struct Fault {
  std::uint64_t at_ns;
  std::string what;
  std::uint64_t in_flight = 0;
};

struct Totals {
  std::uint64_t answered = 0, open = 0, refused = 0, steps = 0;
  std::array<std::size_t, 3> keys{};
  std::size_t unknown = 0;
  std::vector<Window> violations;
  std::uint64_t first_ns = kOpen;  // of the answers that no order explains
};

std::vector<Fault> read_faults(const std::string& path) {
  std::vector<Fault> faults;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    Fault f{};
    if (words >> f.at_ns && std::getline(words >> std::ws, f.what)) faults.push_back(f);
  }
  return faults;
}

// In progress: called before the fault, and neither answered nor given up before it.
void count_in_flight(const Operation& op, std::vector<Fault>& faults) {
  const std::uint64_t end_ns = op.open() ? op.given_up_ns : op.returned_ns;
  for (Fault& f : faults) f.in_flight += op.called_ns < f.at_ns && end_ns > f.at_ns;
}

void check_key(const KeyHistory& key, const Limits& limits, Totals& t) {
  ++t.keys[static_cast<std::size_t>(key.model)];
  const Answer answer = check(key.operations, limits);
  t.steps += answer.steps;
  if (answer.verdict == Verdict::kUnknown) {
    ++t.unknown;
    fmt::print("unknown: {} with {} operations: not decided within {} steps\n", key.key,
               key.operations.size(), limits.steps);
  }
  if (answer.verdict != Verdict::kViolation) return;
  t.violations.push_back(failing_window(key, limits));
  t.first_ns = std::min(t.first_ns, t.violations.back().at_ns);
}

void print_result(const History& history, Totals& t, const std::vector<Fault>& faults) {
  // The smallest windows are the most useful.
  std::stable_sort(t.violations.begin(), t.violations.end(),
                   [](const Window& a, const Window& b) { return a.size < b.size; });
  for (std::size_t i = 0; i < std::min(t.violations.size(), kWindowsShown); ++i) {
    fmt::print("{}", t.violations[i].text);
  }
  for (const Fault& f : faults) fmt::print("fault {} {} {}\n", f.at_ns, f.in_flight, f.what);
  fmt::print("answered {}\nopen {}\nrefused {}\nkeys {} {} {}\nsteps {}\n", t.answered, t.open,
             t.refused, t.keys[0], t.keys[1], t.keys[2], t.steps);
  if (!t.violations.empty()) {
    std::uint64_t before = 0;
    for (const KeyHistory& key : history.keys()) {
      before += static_cast<std::uint64_t>(
          std::count_if(key.operations.begin(), key.operations.end(),
                        [&](const Operation& op) { return op.returned_ns < t.first_ns; }));
    }
    const auto faults_before = std::count_if(faults.begin(), faults.end(),
                                             [&](const Fault& f) { return f.at_ns < t.first_ns; });
    fmt::print("violations {}\nviolation_after {} {}\n", t.violations.size(), before,
               faults_before);
  }
  fmt::print("verdict {}\n", !t.violations.empty() ? "violation"
                             : t.unknown > 0       ? "unknown"
                                                   : "ok");
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, faults_path;
  Limits limits;
  const crane::setup::Program program{
      {"linear-check",
       "Checks whether a recorded history is linearizable.",
       {{"history", &path, "the history", {.required = true}},
        {"--faults", &faults_path, "file of the faults during the history"},
        {"--steps", &limits.steps, "step budget per key"}}},
      "",
      ""};
  const auto report = [](const std::string& mistake) {
    fmt::print(stderr, "linear-check: {}; see --help\n", mistake);
  };
  if (const auto status = CommandLine(program).status_after(argc, argv, 2, report)) {
    return *status;
  }
  History history;
  if (const crane::Outcome read = history.read(path); !read.ok()) {
    const crane::Error e = read.error();
    fmt::print(stderr, "linear-check: {}: {}: {}\n", path, e.what,
               e.code == crane::Code::kSystem ? std::strerror(e.detail)
                                              : "line " + std::to_string(e.detail));
    return 2;
  }
  std::vector<Fault> faults = read_faults(faults_path);
  Totals totals;
  for (const KeyHistory& key : history.keys()) {
    for (const Operation& op : key.operations) {
      totals.answered += !op.open();
      totals.open += op.open();
      totals.refused += op.refused;
      count_in_flight(op, faults);
    }
    check_key(key, limits, totals);
  }
  print_result(history, totals, faults);
  return !totals.violations.empty() ? 1 : totals.unknown > 0 ? 3 : 0;
}
