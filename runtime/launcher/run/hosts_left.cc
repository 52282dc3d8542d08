// SPDX-License-Identifier: Apache-2.0
// Lost and drained replicas of a group of several hosts, and what this machine keeps of the group.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/launcher/context_file.h"
#include "runtime/launcher/run/hosts.h"

namespace crane::launcher {

std::string Hosts::place_of(const Host& host) {
  return "replica " + std::to_string(host.number) + " on " + host.name;
}

namespace {

std::string directory_of(const Options& options) {
  return options.dir.empty() ? setup::default_directory() : options.dir;
}

}  // namespace

// All hosts have accepted the group: from now on crane-ctl on this machine shows them as one.
void Hosts::keep_context() {
  std::error_code unknown;
  made_directory_ = !std::filesystem::exists(directory_of(options_), unknown);
  setup::GroupFile file;
  Outcome kept = setup::parse_group_file(file_, "the command line", file);
  if (kept) kept = write_context(directory_of(options_), file, secret_);
  keeps_context_ = kept.ok();
  if (!kept) print_message(kept.error().text, setup::Level::kWarning);
}

// Replicas that may still run can still be asked.
void Hosts::drop_context() const {
  const bool stopped = options_.remote.stop && status_ == 0;
  if (!keeps_context_ && !stopped) return;
  if (count(State::kLost) > 0) return;
  const std::string directory = directory_of(options_);
  remove_context(directory, options_.name);
  if (made_directory_) (void)rmdir(directory.c_str());  // fails if something else uses it
}

// The host's node ended on request, or an attempt to resume the replica failed.
void Hosts::on_drained(Host& host, const nlohmann::json& message) {
  host.drained = true;
  host.server = false;
  host.ports.clear();
  const std::string why = message.at("why");
  if (phase_ != Phase::kStopping) {
    print_message(
        place_of(host) +
        (why.empty() ? " is drained" : " did not recover, and is drained as before: " + why) +
        "; crane-ctl replica resume " + std::to_string(host.number) + " there brings it back");
  }
  if (phase_ == Phase::kEnding) return on_server_end();
  look_whether_all_run();
}

void Hosts::on_resumed(Host& host) {
  host.drained = false;
  print_message(place_of(host) + " is brought back");
}

// Decides whether the group continues after it lost a replica or the connection to one.
void Hosts::decide_after_loss(Host& host) {
  // Strict mode would stop the same server on the other hosts, too.
  if (phase_ == Phase::kStarting || status_of(host.problem) == Status::kUnhooked) {
    return end_with(host.problem.error());
  }
  const int total = static_cast<int>(hosts_.size());
  const int maybe = maybe_running();
  print_message(host.problem.error().text, setup::Level::kWarning);
  if (maybe * 2 <= total) {
    return end_with(failure(Status::kMajorityLost, "the group cannot continue", options_.name,
                            std::to_string(maybe) + " of " + std::to_string(total) +
                                " replicas are left, fewer than a majority",
                            "start it again"));
  }
  if (phase_ == Phase::kServing && host.state == State::kEnded) {
    print_message("the group continues with " + std::to_string(maybe) + " of " +
                  std::to_string(total) + " replicas");
  }
}

// Replicas that may run, including those that lost their connection.
int Hosts::maybe_running() const {
  return static_cast<int>(std::count_if(hosts_.begin(), hosts_.end(), [](const Host& h) {
    return (h.state == State::kRuns && !h.drained) || h.state == State::kLost;
  }));
}

int Hosts::count(State state) const {
  return static_cast<int>(std::count_if(hosts_.begin(), hosts_.end(),
                                        [state](const Host& h) { return h.state == state; }));
}

int Hosts::connected() const {
  return static_cast<int>(
      std::count_if(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.shell.pid > 0; }));
}

}  // namespace crane::launcher
