// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay_bisect.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace crane::node {
namespace {

namespace fs = std::filesystem;
using proxy::RecordedSchedule;

// Splits DIR/replica-3.schedule, or DIR.
void split(const std::string& name, std::string& directory, int& replica) {
  std::error_code ignored;
  directory = name;
  replica = -1;
  if (fs::is_directory(name, ignored)) return;
  const fs::path path = name;
  if (std::sscanf(path.filename().c_str(), "replica-%d.", &replica) != 1) return;
  directory = path.parent_path().empty() ? "." : path.parent_path().string();
}

struct Side {
  LoadedRecording recording;
  std::string again;  // directory of the recording of its replay
};

// Replays and records every turn in a separate process; returns the replay's verdict.
ReplayStatus run_again(const Side& side, std::uint64_t to, bool verbose) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ReplayRequest request;
    request.to = to;
    request.record = side.again;
    request.trace = true;
    request.verbose = verbose;
    const ReplayReport report = run_replay(side.recording, std::move(request));
    if (!report.problem) {
      fmt::print(stderr, "crane-replay: cannot replay: {}\n", report.problem.error().text);
    }
    const auto status = report.problem.ok() ? report.verdict : status_of(report.problem);
    std::fflush(nullptr);
    ::_exit(static_cast<int>(status));
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    return ReplayStatus::kFailed;
  }
  return static_cast<ReplayStatus>(WEXITSTATUS(status));
}

// Why there are no turns; empty: the replay matched the recording up to entry `to`.
std::string why_no_turns(const Side& side, std::uint64_t to, bool verbose) {
  const std::string name = side.recording.history->file().path();
  switch (run_again(side, to, verbose)) {
    case ReplayStatus::kEqual:
    case ReplayStatus::kEndsEarly:
      return "";
    case ReplayStatus::kDifferent:
      return name +
             ": its inputs do not lead to the same actions again: a data race, or a value from the "
             "machine";
    default:
      return name + ": cannot be replayed up to that entry";
  }
}

// LIVE-V7
void run_both(Side& one, Side& other, bool verbose, BisectReport& report) {
  std::string place = fs::temp_directory_path() / "crane-bisect-XXXXXX";
  if (::mkdtemp(place.data()) == nullptr) {
    report.why_not = place + ": " + std::strerror(errno);
    return;
  }
  one.again = place + "/one";
  other.again = place + "/other";
  const std::uint64_t to = report.comparison.difference->index;
  for (Side* side : {&one, &other}) {
    if (!report.why_not.empty()) break;
    const std::uint64_t last = side->recording.history->last();
    report.why_not = why_no_turns(*side, std::min(to, last), verbose);
  }
  if (report.why_not.empty()) {
    std::vector<RecordedSchedule> both;
    for (const Side* side : {&one, &other}) {
      auto opened = RecordedSchedule::open(
          fmt::format("{}/replica-{}.schedule", side->again, side->recording.replica));
      if (opened.ok()) both.push_back(std::move(opened).value());
    }
    if (both.size() == 2) {
      const auto again = proxy::compare_schedules(both, true);
      report.turn = again.turn;
      if (again.turn) {
        for (std::size_t i = 0; i < both.size(); ++i) {
          const auto& turn = again.turn->sides[i];
          report.sides.push_back(turn ? both[i].names().text(*turn)
                                      : "had already admitted the entry");
        }
      }
    }
    if (!report.turn) report.why_not = "when run again, both took the same turns";
  }
  std::error_code ignored;
  fs::remove_all(place, ignored);
}

Outcome load(const std::string& name, Side& side) {
  std::string directory;
  int replica = -1;
  split(name, directory, replica);
  return load_recording(directory, replica, side.recording);
}

}  // namespace

BisectReport bisect(const std::string& one, const std::string& other, bool verbose) {
  BisectReport report;
  Side sides[2];
  report.problem = load(one, sides[0]);
  if (report.problem.ok()) report.problem = load(other, sides[1]);
  if (!report.problem) return report;
  if (sides[0].recording.about.log_digest != sides[1].recording.about.log_digest) {
    report.problem =
        replay_error(ReplayStatus::kBadRecording, other + ": not of the same group as " + one +
                                                      "; name two replicas of one group");
    return report;
  }
  std::vector<RecordedSchedule> both;
  both.push_back(std::move(*sides[0].recording.schedule));
  both.push_back(std::move(*sides[1].recording.schedule));
  report.comparison = proxy::compare_schedules(both, true);
  report.turn = report.comparison.turn;
  if (report.turn) {
    for (std::size_t i = 0; i < both.size(); ++i) {
      const auto& turn = report.turn->sides[i];
      report.sides.push_back(turn ? both[i].names().text(*turn) : "had already admitted the entry");
    }
  }
  sides[0].recording.schedule = std::move(both[0]);
  sides[1].recording.schedule = std::move(both[1]);
  if (report.comparison.difference && !report.turn) {
    run_both(sides[0], sides[1], verbose, report);
  }
  return report;
}

}  // namespace crane::node
