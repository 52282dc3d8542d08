// SPDX-License-Identifier: Apache-2.0
#pragma once
// The work of crane-replay around a node: reads a recording, makes separate directories for the
// server, runs the history, and reports the result.
//
// Nothing of the recorded group is touched.  The server gets separate directories and a separate
// container, and sees bound directories through an overlay.
//
// Threads: one; call run_replay() at most once per process, because it enters a mount namespace.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proxy/host/history_about.h"
#include "proxy/record/history_follow.h"
#include "proxy/record/history_record.h"
#include "proxy/record/output_record.h"
#include "proxy/record/schedule_record.h"
#include "proxy/replay/replay_check.h"
#include "proxy/replay/replay_tool.h"
#include "proxy/replay/replay_valgrind.h"

namespace crane::node {

// The exit status of crane-replay.
enum class ReplayStatus : int {
  kEqual = 0,
  kDifferent = 1,
  kEndsEarly = 2,     // equal as far as it goes; the recording ends before its replica
  kBadRecording = 3,  // missing, damaged, of another version, or not one replica's
  kNotHere = 4,       // another build of libcrane.so or of the server, no privilege, no tool
  kFailed = 5,        // the server could not be started or was killed, or the replay interrupted
  kUsage = 100,
};

// Why a replay is impossible: an Error with exit status `status` and a text of the form
// "<object>: <cause>; <advice>".
inline Error replay_error(ReplayStatus status, std::string text) {
  return {Code::kBadArgument, 0, "replay", std::move(text), static_cast<int>(status)};
}
inline ReplayStatus status_of(const Outcome& outcome) {
  return outcome.ok() ? ReplayStatus::kEqual
                      : static_cast<ReplayStatus>(outcome.error().exit_status);
}

struct LoadedRecording {
  std::string directory;
  std::uint8_t replica = 0;
  // Exactly one is set: load_recording() sets `history`, load_growing() `follower`.
  std::optional<proxy::History> history;
  std::unique_ptr<proxy::HistoryFollower> follower;
  std::optional<proxy::Recording> outputs;
  std::optional<proxy::RecordedSchedule> schedule;
  HistoryAbout about;
};

// `replica` negative: the first replica with a whole history, or else the one with the longest.
Outcome load_recording(const std::string& directory, int replica, LoadedRecording& loaded);

// For a history of this replica that is still being written.  Its server is compared only with the
// digests in the log.
Outcome load_growing(const std::string& directory, int replica, LoadedRecording& loaded);

// The progress of a replay that follows.
struct ReplayProgress {
  std::uint64_t entry = 0;      // the last one that the server admitted
  std::uint64_t position = 0;   // in the history's file: read up to here
  std::uint64_t digests = 0;    // compared and equal
  std::uint64_t equal_cut = 0;  // the last equal one
  std::optional<proxy::ReplayDifference> difference;
  const Config* config = nullptr;  // the node's
};

struct ReplayRequest {
  std::string from;      // a checkpoint's directory, or its name in <recording>/checkpoints; or ""
  std::uint64_t to = 0;  // 0: the history's end
  std::string record;    // directory for recordings of the replay; empty: none
  bool trace = false;    // with `record`: record every turn
  bool verbose = false;
  std::string valgrind;  // valgrind's tool; empty: no valgrind
  std::unique_ptr<ReplayTool> tool;
  // For a growing history: the parent of the server's directories, and their name; empty: as for
  // any replay.
  std::string place_dir, place_name;
  std::function<void(const ReplayProgress&)> on_progress;
};

struct ReplayReport {
  Outcome problem = Done{};  // without it there is a verdict
  ReplayStatus verdict = ReplayStatus::kFailed;
  std::optional<proxy::ReplayDifference> difference;
  std::optional<proxy::TurnDifference> turn;
  std::uint64_t first = 0, last = 0;  // entries that the server got
  std::uint64_t points = 0, bytes = 0, digests = 0;
  std::uint64_t equal_to = 0;  // log index
  bool rest_compared = false;
  std::int64_t recorded_ns = 0, took_ns = 0;  // time between these entries; time of the replay
  ValgrindReports valgrind;
};

ReplayReport run_replay(const LoadedRecording& loaded, ReplayRequest request);

}  // namespace crane::node
