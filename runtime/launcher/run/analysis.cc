// SPDX-License-Identifier: Apache-2.0
// The group's analysis replica: it is let in once the group serves, recovers when its processes
// were killed, and is let go without being missed.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/launcher/child.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {

using Json = nlohmann::json;

bool AnalysisPlace::has_report() const {
  std::error_code ignored;
  return std::filesystem::exists(report(), ignored);
}

void AnalysisPlace::end(const std::string& group, int place) const {
  if (tool_.empty()) return;
  if (has_report()) say("what " + tool_ + " found is in " + report());
  std::error_code ignored;
  std::filesystem::remove(directory_ + "/replica-" + std::to_string(place) + ".history", ignored);
  (void)rmdir(directory_.c_str());
  // Of those that were killed with all their processes.
  const std::string memory = "crane." + group + ".r" + std::to_string(place) + ".";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    if (entry.path().filename().string().rfind(memory, 0) != 0) continue;
    std::error_code failed;
    std::filesystem::remove_all(entry.path(), failed);
  }
}

// It is a member, or is to be none, and the group's list says otherwise.
bool Group::analysis_differs() const {
  if (phase_ != Phase::kServing || options_.analysis_place() < 0) return false;
  return analysis_.differs(replicas_[static_cast<std::size_t>(options_.analysis_place())].member);
}

void Group::look_after_analysis() {
  if (!analysis_differs() || leader() < 0) return;
  const int place = options_.analysis_place();
  const char* const change =
      analysis_.change(replicas_[static_cast<std::size_t>(place)].member, now_ms());
  if (change == nullptr) return;
  tell(replicas_[static_cast<std::size_t>(leader())],
       {{"t", "member"}, {"change", change}, {"replica", place}});
}

void Group::analysis_changed(Replica& replica, bool is_member) {
  if (!analysis_.listed(is_member, replica.node >= 0)) return;
  replica.returns.forget();
  start_analysis(replica, " runs the server in " + analysis_.tool() + ", beside the group");
}

void Group::start_analysis(Replica& replica, const std::string& how) {
  if (start_again(replica, {})) {
    say("analysis replica " + std::to_string(replica.number) + how);
  } else {
    let_analysis_go(replica, replica.problem.error().text);
  }
}

void Group::let_analysis_go(Replica& replica, const std::string& why) {
  analysis_.let_go();
  say("analysis replica " + std::to_string(replica.number) + " is gone: " + why +
      "; the group goes on without it" +
      (analysis_.has_report() ? ", what it found is in " + analysis_.report() : std::string()));
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

}  // namespace crane::launcher
