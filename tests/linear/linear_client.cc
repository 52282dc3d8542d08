// SPDX-License-Identifier: Apache-2.0
// linear-client: loads a replicated redis and records a history (tests/linear/history.h).
//
// It runs random operations until SIGTERM, then it reads every key once. Every 20 ms it prints a
// line: ANSWERED OPEN REFUSED ODD. Exit: 0 done, 1 the closing reads were not answered in time, 2
// wrong use.
#include <fmt/format.h>
#include <signal.h>

#include "dmt/base/clock.h"
#include "runtime/setup/command_line.h"
#include "tests/linear/client.h"

namespace {

volatile sig_atomic_t stop_requested = 0;

constexpr int kTurnMs = 5;
constexpr std::uint64_t kPrintNs = 20'000'000;

std::uint64_t monotonic_ns() noexcept { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

void print_counts(const crane::linear::Counts& c) {
  fmt::print("{} {} {} {}\n", c.answered, c.open, c.refused, c.odd);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  crane::linear::ClientOptions options;
  unsigned closing_seconds = 60;
  const crane::setup::Program program{
      {"linear-client",
       "Loads redis and records a history of operations.",
       {{"--address",
         &options.addresses,
         "address to connect to; may be repeated",
         {.required = true}},
        {"--port", &options.port, "port to connect to", {.required = true}},
        {"--history", &options.history, "file to write", {.required = true}},
        {"--clients", &options.clients, "number of clients"},
        {"--timeout-ms", &options.timeout_ms,
         "limit for an answer; later the operation stays open"},
        {"--seed", &options.workload.seed, "seed of the workload"},
        {"--prefix", &options.workload.prefix, "prefix of key names"},
        {"--keys", &options.workload.keys, "keys of each model at a time"},
        {"--operations", &options.workload.operations, "operations per register or counter"},
        {"--list-operations", &options.workload.list_operations, "operations per list"},
        {"--closing-seconds", &closing_seconds, "limit for the reads at the end"}}},
      "",
      ""};
  const auto report = [](const std::string& mistake) {
    fmt::print(stderr, "linear-client: {}; see --help\n", mistake);
  };
  if (const auto status = crane::setup::CommandLine(program).status_after(argc, argv, 2, report)) {
    return *status;
  }
  crane::linear::Clients clients(options);
  if (!clients.open()) {
    fmt::print(stderr, "linear-client: cannot write {}, or an address is invalid\n",
               options.history);
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  std::uint64_t printed_ns = 0, until_ns = 0;
  while (!clients.finished()) {
    clients.turn(kTurnMs);
    const std::uint64_t now = monotonic_ns();
    if (stop_requested != 0 && until_ns == 0) {
      clients.finish();
      until_ns = now + std::uint64_t{closing_seconds} * 1'000'000'000;
    }
    if (until_ns != 0 && now > until_ns) break;
    if (now < printed_ns + kPrintNs) continue;
    printed_ns = now;
    print_counts(clients.counts());
  }
  print_counts(clients.counts());
  return clients.finished() ? 0 : 1;
}
