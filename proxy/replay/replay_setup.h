// SPDX-License-Identifier: Apache-2.0
#pragma once
// What crane-replay does around a node: reads a recording, makes a place of its own for the server,
// runs the history, and says how it went.
//
// Nothing of the recorded group is touched: the server gets directories and a container of its own,
// and what was bound into it is seen through an overlay.
//
// Threads: one; run_replay() at most once per process (it enters mounts of its own).

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

// How crane-replay ends.
enum class ReplayStatus : int {
  kEqual = 0,
  kDifferent = 1,
  kEndsEarly = 2,     // equal as far as it goes, and the recording ends before its replica did
  kBadRecording = 3,  // missing, damaged, of another version, or not one replica's
  kNotHere = 4,       // another build of libcrane.so or of the server, no privilege, no tool
  kFailed = 5,        // the server could not be started or was killed, or the replay interrupted
  kUsage = 100,
};

// Why nothing can be replayed: an Error whose exit status is `status`; its text is
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
  // One of these: load_recording() gives the first, load_growing() the second.
  std::optional<proxy::History> history;
  std::unique_ptr<proxy::HistoryFollower> follower;
  std::optional<proxy::Recording> outputs;
  std::optional<proxy::RecordedSchedule> schedule;
  HistoryAbout about;
};

// `replica` negative: the first whose history is whole, else the one whose history is longest.
Outcome load_recording(const std::string& directory, int replica, LoadedRecording& loaded);

// A history that is still being written, of this replica.  Its server is compared with the digests
// in the log only.
Outcome load_growing(const std::string& directory, int replica, LoadedRecording& loaded);

// Where a replay that follows stands.
struct ReplayProgress {
  std::uint64_t entry = 0;      // the last one that the server admitted
  std::uint64_t position = 0;   // in the history's file: what is before was read
  std::uint64_t digests = 0;    // compared and equal
  std::uint64_t equal_cut = 0;  // the last one that was equal
  std::optional<proxy::ReplayDifference> difference;
  const Config* config = nullptr;  // of the node that runs it
};

struct ReplayRequest {
  std::string from;      // a checkpoint's directory, or its name in <recording>/checkpoints; or ""
  std::uint64_t to = 0;  // 0: the history's end
  std::string record;    // directory for recordings of the replay; empty: none
  bool trace = false;    // with `record`: every turn, though the recording holds none
  bool verbose = false;
  std::string valgrind;  // its tool; empty: without
  std::unique_ptr<ReplayTool> tool;
  // Of a growing history: where the server's directories are made, and the name of them; empty: as
  // for any replay.
  std::string place_dir, place_name;
  std::function<void(const ReplayProgress&)> on_progress;
};

struct ReplayReport {
  Outcome problem = Done{};  // before or instead of a verdict
  ReplayStatus verdict = ReplayStatus::kFailed;
  std::optional<proxy::ReplayDifference> difference;
  std::optional<proxy::TurnDifference> turn;
  std::uint64_t first = 0, last = 0;  // entries that the server got
  std::uint64_t points = 0, bytes = 0, digests = 0;
  std::uint64_t equal_to = 0;  // log index
  bool rest_compared = false;
  std::int64_t recorded_ns = 0, took_ns = 0;  // between these entries; now
  ValgrindReports valgrind;
};

ReplayReport run_replay(const LoadedRecording& loaded, ReplayRequest request);

}  // namespace crane::node
