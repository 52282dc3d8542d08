// SPDX-License-Identifier: Apache-2.0
// The group's analysis replica: it is let in once the group serves, recovers when its processes
// were killed, and is let go without anybody missing it.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/launcher/channel.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kAskAgainMs = 500;

}  // namespace

std::string Group::report_of_analysis() const { return options_.analysis_dir + "/report.txt"; }

// It is a member, or is to be none, and the group's list says otherwise.
bool Group::analysis_differs() const {
  const int place = options_.analysis_place();
  if (place < 0 || phase_ != Phase::kServing || analysis_settled_) return false;
  return replicas_[static_cast<std::size_t>(place)].member == analysis_gone_;
}

void Group::look_after_analysis() {
  if (!analysis_differs() || leader() < 0 || now_ms() - analysis_asked_ms_ < kAskAgainMs) return;
  analysis_asked_ms_ = now_ms();
  send_message(replicas_[static_cast<std::size_t>(leader())].channel,
               Json{{"t", "member"},
                    {"change", analysis_gone_ ? "remove" : "add"},
                    {"replica", options_.analysis_place()}}
                   .dump());
}

// The group's list, as it is now, after what was asked for: from here on it is the operators'.
void Group::analysis_changed(Replica& replica, bool is_member) {
  if (is_member != analysis_gone_) analysis_settled_ = true;
  if (!is_member || replica.node >= 0) return;
  if (analysis_gone_ && !analysis_settled_) return;  // its removal is on its way
  analysis_gone_ = false;
  analysis_settled_ = true;
  replica.returns.forget();
  start_analysis(replica, " runs the server in " + options_.analysis + ", beside the group");
}

void Group::start_analysis(Replica& replica, const std::string& how) {
  if (start_again(replica, {})) {
    say("analysis replica " + std::to_string(replica.number) + how);
  } else {
    let_analysis_go(replica, replica.problem.error().text);
  }
}

void Group::let_analysis_go(Replica& replica, const std::string& why) {
  analysis_gone_ = true;
  analysis_settled_ = false;
  std::error_code ignored;
  const bool found = std::filesystem::exists(report_of_analysis(), ignored);
  say("analysis replica " + std::to_string(replica.number) + " is gone: " + why +
      "; the group goes on without it" +
      (found ? ", what it found is in " + report_of_analysis() : std::string()));
  replica.problem = Done{};  // `why` may be its text
  replica.returns.forget();
  directories_.keep_logs();
  write_state();
}

// Nothing is lost with it.  Who was killed recovers, and runs the log from its beginning if the
// others still have that.
void Group::on_analysis_end(Replica& replica, int status) {
  if (is_gone(replica)) return;
  if (!replica.problem) return let_analysis_go(replica, replica.problem.error().text);
  replica.problem =
      failure(Status::kNodeFailed, "analysis replica " + std::to_string(replica.number),
              "its processes ended", how_ended(status), "its log: " + log_of(replica));
  plan_return(replica);
}

// Nothing stays behind of one that found nothing.
void Group::end_analysis() const {
  if (options_.analysis.empty()) return;
  std::error_code ignored;
  if (std::filesystem::exists(report_of_analysis(), ignored)) {
    say("what " + options_.analysis + " found is in " + report_of_analysis());
  }
  const int place = options_.analysis_place();
  std::filesystem::remove(options_.analysis_dir + "/replica-" + std::to_string(place) + ".history",
                          ignored);
  (void)rmdir(options_.analysis_dir.c_str());
  // Of those that were killed with all their processes.
  const std::string memory = "crane." + options_.name + ".r" + std::to_string(place) + ".";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    if (entry.path().filename().string().rfind(memory, 0) != 0) continue;
    std::error_code failed;
    std::filesystem::remove_all(entry.path(), failed);
  }
}

}  // namespace crane::launcher
