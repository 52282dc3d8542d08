// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "checkpoint/container.h"
#include "checkpoint/criu.h"
#include "dmt/base/clock.h"
#include "runtime/launcher/doctor/machine.h"
#include "runtime/launcher/doctor/scratch.h"
#include "runtime/supervise/ends.h"

namespace crane::launcher {
namespace {

using checkpoint::Container;
using checkpoint::ServerOptions;

ServerOptions options_of(const Scratch& scratch, const char* replica, int limit_ms) {
  ServerOptions options;
  options.held_fd = scratch.alive_fd();
  options.name = "crane.doctor." + std::to_string(getpid()) + "." + replica;
  options.host_name = "craned";
  options.directory = scratch.path() + "/" + replica;
  options.command = {"/bin/sleep", "600"};
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  options.criu_limit_ms = limit_ms;
  return options;
}

std::string problem_of(const Container& server, const Error& error, const char* late) {
  if (error.code == Code::kBusy) return late;
  return server.reason().empty() ? error.message() : server.reason();
}

// Waits for the server.  Returns why it did not start or was not restored; empty: it runs.
std::string await_start(Container& server, const Outcome& begun, int limit_ms) {
  if (!begun) return problem_of(server, begun.error(), "another container of this name runs");
  if (auto pid = server.started(limit_ms); !pid) {
    return problem_of(server, pid.error(), "it did not start in time");
  }
  const auto ended = server.wait(0);
  return ended ? supervise::how_ended(ended.value()) + " at once" : "";
}

}  // namespace

Trial look_for_criu() {
  Trial trial;
  const auto program = checkpoint::find_criu();
  if (!program) {
    trial.criu_problem = program.error().message();
    return trial;
  }
  trial.criu = program.value();
  if (auto version = checkpoint::criu_version(trial.criu)) {
    trial.criu_version = version.value();
  } else {
    trial.criu_problem = version.error().message();
  }
  return trial;
}

Trial try_container(const std::string& directory, int limit_ms) {
  Trial trial = look_for_criu();
  const Scratch scratch(directory);
  trial.tried = true;
  if (scratch.error() != 0) {
    trial.container_problem = directory + ": " + strerror(scratch.error());
    return trial;
  }
  const std::string images = scratch.path() + "/images", upper = scratch.path() + "/upper";
  {
    Container first(options_of(scratch, "r0", limit_ms));
    trial.container_problem = await_start(first, first.begin(), limit_ms);
    if (!trial.container_problem.empty() || !trial.criu_problem.empty()) return trial;
    const std::int64_t begin = monotonic_ns() / 1'000;
    if (auto begun = first.begin_checkpoint(images, upper); !begun) {
      trial.criu_problem = "dump: " + problem_of(first, begun.error(), "another is under way");
    } else if (auto dumped = first.checkpointed(limit_ms); !dumped) {
      trial.criu_problem =
          "dump: " + problem_of(first, dumped.error(), "CRIU was not ready in time");
    }
    if (!trial.criu_problem.empty()) return trial;
    trial.dump_us = monotonic_ns() / 1'000 - begin;
  }
  Container second(options_of(scratch, "r1", limit_ms));
  const std::int64_t begin = monotonic_ns() / 1'000;
  const std::string problem = await_start(second, second.begin_restore(images, upper), limit_ms);
  if (problem.empty()) {
    trial.restore_us = monotonic_ns() / 1'000 - begin;
  } else {
    trial.criu_problem = "restore: " + problem;
  }
  return trial;
}

}  // namespace crane::launcher
