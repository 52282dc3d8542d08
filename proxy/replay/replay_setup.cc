// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay_setup.h"

#include <fmt/format.h>
#include <sched.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoint/manifest.h"
#include "proxy/host/last_words.h"
#include "proxy/host/placement.h"
#include "proxy/node/node.h"
#include "proxy/replay/replay.h"
#include "runtime/setup/branch_counter.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/program.h"
#include "runtime/setup/progress_line.h"

namespace crane::node {
namespace {

namespace fs = std::filesystem;

constexpr int kPlacesMax = 10;  // simultaneous replays on this machine

Outcome bad(const std::string& object, const std::string& cause, const std::string& todo) {
  return replay_error(ReplayStatus::kBadRecording, object + ": " + cause + "; " + todo);
}

Outcome not_here(const std::string& object, const std::string& cause, const std::string& todo) {
  return replay_error(ReplayStatus::kNotHere, object + ": " + cause + "; " + todo);
}

std::string cause_of(const Error& error) {
  if (error.code == Code::kSystem) return std::generic_category().message(error.detail);
  if (error.code == Code::kWrongVersion) return "recorded by another version of Crane";
  return error.what;
}

// The replicas whose history is in the directory.
std::vector<int> replicas_in(const std::string& directory) {
  std::vector<int> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename();
    int number = -1, end = 0;
    if (std::sscanf(name.c_str(), "replica-%d.history%n", &number, &end) == 1 &&
        static_cast<std::size_t>(end) == name.size()) {
      found.push_back(number);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string file_of(const std::string& directory, int replica, const char* suffix) {
  return fmt::format("{}/replica-{}.{}", directory, replica, suffix);
}

Outcome open_history(const std::string& directory, int replica, LoadedRecording& loaded) {
  const std::string path = file_of(directory, replica, "history");
  std::string why;
  auto history = proxy::History::open(path, why);
  if (!history.ok()) return bad(path, why, "name the DIR of crane-run --record");
  loaded.history = std::move(history).value();
  loaded.replica = static_cast<std::uint8_t>(replica);
  if (loaded.history->last() == 0) return bad(path, "holds no entry", "use another replica's");
  return Done{};
}

Outcome choose_history(const std::string& directory, int replica, LoadedRecording& loaded) {
  if (replica >= 0) return open_history(directory, replica, loaded);
  std::error_code missing;
  if (!fs::is_directory(directory, missing)) {
    return bad(directory, missing ? missing.message() : "is not a directory",
               "name the DIR of crane-run --record, which has replica-*.history");
  }
  const std::vector<int> all = replicas_in(directory);
  if (all.empty()) {
    return bad(directory, "holds no history (replica-*.history)",
               "name the DIR of crane-run --record");
  }
  LoadedRecording best;
  Outcome first = Done{};
  for (const int number : all) {
    LoadedRecording one;
    const Outcome problem = open_history(directory, number, one);
    if (!problem) {
      if (first.ok()) first = problem;
      continue;
    }
    const bool whole = !one.history->file().ends_early();
    if (!best.history || whole || one.history->last() > best.history->last()) {
      best = std::move(one);
    }
    if (whole) break;
  }
  if (!best.history) return first;
  loaded = std::move(best);
  return Done{};
}

// Compares the machine, its server and its Crane with those of the recording.
Outcome check_here(const LoadedRecording& loaded, const setup::ProgramPaths& parts) {
  const HistoryAbout& a = loaded.about;
  const std::string recorded = file_of(loaded.directory, loaded.replica, "history");
  if (a.layout_version != dmt::kLayoutVersion ||
      a.library_digest != setup::file_digest(parts.library)) {
    return not_here(recorded, "recorded with another build of libcrane.so than " + parts.library,
                    "replay it with the crane-replay of the Crane that recorded it");
  }
  if (a.program_digest != setup::file_digest(a.config.program)) {
    return not_here(recorded, "the server " + a.config.program + " is now another build, or gone",
                    "install the recorded one");
  }
  const auto machine = setup::check_machine(a.config.container, {});
  if (!machine) return replay_error(ReplayStatus::kNotHere, machine.error().text);
  const Outcome counter = a.config.branch_counter ? setup::check_branch_event() : Done{};
  if (!counter) return replay_error(ReplayStatus::kNotHere, counter.error().text);
  if (!a.config.binds.empty() && ::geteuid() != 0) {
    return not_here(recorded, "the server had directories bound into it", "run as root");
  }
  return Done{};
}

// The name is as long as the recorded group's: without root the server sees this path, and its
// length determines where the stack begins. The point in front tells crane-ctl that it is no group.
std::string place_name(const std::string& group, int number) {
  std::string name = ".replay";
  name.resize(std::max<std::size_t>(group.size(), 2), '-');
  name.back() = static_cast<char>('0' + number);
  return name;
}

Outcome make_place(const Config& config, const ReplayRequest& request,
                   setup::GroupDirectories& directories) {
  Outcome problem = Done{};
  const int places = request.place_name.empty() ? kPlacesMax : 1;
  for (int i = 0; i < places; ++i) {
    setup::GroupPlace place;
    place.name = places == 1 ? request.place_name : place_name(config.group, i);
    place.dir = request.place_dir;
    place.replicas = config.replica + 1;
    place.record = config.record;
    place.ring_mb = 0;
    problem = directories.create(place);
    if (setup::status_of(problem) != setup::Status::kGroupExists) break;
  }
  if (problem.ok()) return Done{};
  return replay_error(ReplayStatus::kNotHere, problem.error().text);
}

// The memory in which a replay keeps its changes of bound files.
class BindCover {
 public:
  BindCover() = default;
  // With the mounts in it, so that the directories can be removed.
  ~BindCover() {
    if (!top_.empty()) ::umount2(top_.c_str(), MNT_DETACH);
  }
  BindCover(const BindCover&) = delete;
  BindCover& operator=(const BindCover&) = delete;
  bool mount(const std::string& top) {
    const bool own = ::unshare(CLONE_NEWNS) == 0 &&
                     ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     ::mount("crane", top.c_str(), "tmpfs", 0, "mode=755") == 0;
    if (own) top_ = top;
    return own;
  }

 private:
  std::string top_;
};

// A replay must not change files that the recorded server could write, so they get an overlay.
Outcome cover_binds(Config& config, BindCover& cover) {
  if (config.binds.empty()) return Done{};
  const std::string top = config.replica_dir() + "/binds";
  std::error_code failed;
  fs::create_directories(top, failed);
  if (failed || !cover.mount(top)) {
    return not_here(top, failed ? failed.message() : std::strerror(errno),
                    "run as root, with room in memory");
  }
  int number = 0;
  for (setup::Bind& bind : config.binds) {
    std::string& source = bind.source;
    const std::string place = fmt::format("{}/{}", top, number++);
    if (!fs::is_directory(source, failed)) {
      fs::copy_file(source, place, failed);
      if (failed) return not_here(source, failed.message(), "it was bound into the server");
    } else {
      for (const char* part : {"/upper", "/work", "/all"}) fs::create_directories(place + part);
      const std::string data = fmt::format("lowerdir={},upperdir={}/upper,workdir={}/work,xino=on",
                                           source, place, place);
      if (::mount("crane", (place + "/all").c_str(), "overlay", 0, data.c_str()) != 0) {
        return not_here(source, std::strerror(errno), "cannot mount an overlay over it");
      }
    }
    source = fs::is_directory(place, failed) ? place + "/all" : place;
  }
  return Done{};
}

Outcome find_named_checkpoint(const LoadedRecording& loaded, const ReplayRequest& request,
                              Config& config, std::uint64_t& behind) {
  if (request.from.empty() || request.from == "start") return Done{};
  std::error_code ignored;
  std::string path = request.from;
  if (!fs::is_directory(path, ignored)) path = loaded.directory + "/checkpoints/" + request.from;
  path = fs::absolute(path, ignored).lexically_normal().string();
  if (path.ends_with('/')) path.pop_back();
  std::uint64_t counter = 0;
  if (!fs::is_directory(path, ignored) ||
      !checkpoint::parse_name(fs::path(path).filename(), counter, behind)) {
    return bad(
        request.from, "not a checkpoint",
        "name the directory of one, VIEW.INDEX, or one in " + loaded.directory + "/checkpoints");
  }
  config.restore = true;
  config.restore_from = path;
  return Done{};
}

void open_log(const Config& config, bool verbose) {
  auto tell = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  tell->set_level(verbose ? spdlog::level::info : spdlog::level::off);
  auto keep =
      std::make_shared<spdlog::sinks::basic_file_sink_mt>(config.replica_dir() + "/node.log");
  std::vector<spdlog::sink_ptr> sinks{tell, keep};
  auto log = std::make_shared<spdlog::logger>("crane-replay", sinks.begin(), sinks.end());
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(log));
}

// The time of the group between the first and the last of these entries for the server.
std::int64_t recorded_time(const proxy::History& history, std::uint64_t first, std::uint64_t last) {
  std::uint64_t begin = 0, end = 0;
  for (std::uint64_t i = first; i <= last; ++i) {
    const consensus::EntryView entry = history.entry(i);
    if (entry.type >= proxy::kConsensusTypes) continue;
    if (begin == 0) begin = entry.stamp_ns;
    end = entry.stamp_ns;
  }
  return static_cast<std::int64_t>(end - begin);
}

std::int64_t recorded_time(const LoadedRecording& loaded, const ReplayReport& report) {
  if (loaded.history) return recorded_time(*loaded.history, report.first, report.last);
  return static_cast<std::int64_t>(loaded.follower->last_stamp_ns() -
                                   loaded.follower->first_stamp_ns());
}

void fill_report(const Replay& replay, const LoadedRecording& loaded, bool to_the_end,
                 ExitStatus status, ReplayReport& report) {
  const proxy::ReplayCheck& check = replay.check();
  report.difference = check.difference();
  report.turn = check.turn();
  report.last = value(replay.handed_out());
  report.points = check.points();
  report.bytes = check.bytes();
  report.digests = check.digests();
  report.equal_to = check.last();
  report.rest_compared = check.rest_compared();
  report.recorded_ns = recorded_time(loaded, report);
  // For a followed history only the digests count.
  const bool early =
      loaded.history && (loaded.history->file().ends_early() || loaded.outputs->ends_early() ||
                         loaded.schedule->file().ends_early());
  if (report.difference) {
    report.verdict = ReplayStatus::kDifferent;
  } else if (!replay.reached_end()) {
    const bool configuration = status == ExitStatus::kBadConfiguration;
    report.problem = replay_error(
        configuration ? ReplayStatus::kNotHere : ReplayStatus::kFailed,
        replay.failure().empty()
            ? fmt::format("entry {}: interrupted; equal so far", report.equal_to)
            : fmt::format("entry {}: {}; equal until then", report.equal_to, replay.failure()));
  } else {
    const bool short_of_it = loaded.history && (check.beyond() || (to_the_end && early));
    report.verdict = short_of_it ? ReplayStatus::kEndsEarly : ReplayStatus::kEqual;
  }
}

// Checks the range of the history for this replay.
Outcome check_range(const LoadedRecording& loaded, std::uint64_t behind, std::uint64_t to) {
  const proxy::History& h = *loaded.history;
  const std::string path = h.file().path();
  if (to > h.last()) {
    return replay_error(
        ReplayStatus::kEndsEarly,
        fmt::format("{}: ends at entry {}, before entry {}; name an earlier one, or another "
                    "replica",
                    path, h.last(), to));
  }
  if (h.first() > behind + 1) {
    return bad(path, fmt::format("begins at entry {}", h.first()),
               "begin at a checkpoint (--from), or use another replica's");
  }
  if (behind >= to) {
    return bad(path,
               fmt::format("there is nothing to replay between entries {} and {}", behind, to),
               "name a later entry with --to, or an earlier checkpoint");
  }
  return Done{};
}

}  // namespace

Outcome load_recording(const std::string& directory, int replica, LoadedRecording& loaded) {
  if (auto p = choose_history(directory, replica, loaded); !p) return p;
  loaded.directory = directory;
  const std::string path = loaded.history->file().path();
  if (loaded.history->file().replica() != loaded.replica) {
    return bad(path, fmt::format("is replica {}'s", loaded.history->file().replica()),
               "do not rename files of a recording");
  }
  auto about = parse_history_about(loaded.history->about());
  if (!about.ok()) return bad(path, about.error().what, "record it again");
  loaded.about = std::move(about).value();
  const std::string out = file_of(directory, loaded.replica, "out");
  auto outputs = proxy::Recording::open(out);
  if (!outputs.ok())
    return bad(out, cause_of(outputs.error()), "a replay needs it for the comparison");
  loaded.outputs = std::move(outputs).value();
  const std::string schedule_path = file_of(directory, loaded.replica, "schedule");
  auto schedule = proxy::RecordedSchedule::open(schedule_path);
  if (!schedule.ok()) {
    return bad(schedule_path, cause_of(schedule.error()), "a replay needs it for the comparison");
  }
  loaded.schedule = std::move(schedule).value();
  return Done{};
}

Outcome load_growing(const std::string& directory, int replica, LoadedRecording& loaded) {
  const std::string path = file_of(directory, replica, "history");
  std::string why;
  auto follower = proxy::HistoryFollower::open(path, why);
  if (!follower.ok()) return bad(path, why, "name the directory of the recording");
  loaded.follower = std::make_unique<proxy::HistoryFollower>(std::move(follower).value());
  loaded.directory = directory;
  loaded.replica = static_cast<std::uint8_t>(replica);
  auto about = parse_history_about(loaded.follower->about());
  if (!about.ok()) return bad(path, about.error().what, "record it again");
  loaded.about = std::move(about).value();
  if (loaded.about.config.replicas == 1) {
    return bad(path, "its group has only one replica, whose leader does not log its passed turns",
               "replay it after it has ended");
  }
  loaded.outputs = proxy::Recording::none();
  loaded.schedule = proxy::RecordedSchedule::none();
  return Done{};
}

namespace {

// The node's configuration, and the directories that are removed at its end.
struct Prepared {
  Config config;
  setup::GroupDirectories directories;
  BindCover cover;           // in the directories
  std::uint64_t behind = 0;  // the replay begins after this entry
  std::uint64_t to = 0;      // its last entry
};

Outcome prepare(const LoadedRecording& loaded, const ReplayRequest& request, Prepared& prepared) {
  setup::ProgramPaths parts;
  if (auto p = setup::find_programs(parts); !p)
    return replay_error(ReplayStatus::kNotHere, p.error().text);
  Config& config = prepared.config;
  config = loaded.about.config;
  prepared.to = loaded.follower   ? UINT64_MAX
                : request.to == 0 ? loaded.history->last()
                                  : request.to;
  Outcome problem = find_named_checkpoint(loaded, request, config, prepared.behind);
  if (problem.ok() && loaded.history) problem = check_range(loaded, prepared.behind, prepared.to);
  if (problem.ok()) problem = check_here(loaded, parts);
  if (!problem) return problem;
  config.libcrane = parts.library;
  config.log_digest = loaded.about.log_digest;
  config.replays = true;
  config.trace = loaded.schedule->traced() || request.trace;
  std::error_code ignored;
  if (!request.record.empty()) config.record = fs::absolute(request.record, ignored).string();
  if (problem = make_place(config, request, prepared.directories); !problem) return problem;
  config.dir = prepared.directories.dir();
  config.shm_dir = prepared.directories.shm_dir();
  config.container_name = "crane." + fs::path(config.dir).filename().string();
  if (problem = cover_binds(config, prepared.cover); !problem) return problem;
  if (std::string why; !request.valgrind.empty()) {
    if (!put_in_valgrind(request.valgrind, config, why).ok()) {
      return replay_error(ReplayStatus::kNotHere, why);
    }
  }
  return Done{};
}

ReplayProgress progress_of(const Replay& replay, const LoadedRecording& loaded,
                           std::uint64_t admitted, const Config& config) {
  const proxy::ReplayCheck& check = replay.check();
  const auto& d = check.difference();
  const std::uint64_t unequal = d && d->part == proxy::ReplayPart::kDigest ? 1 : 0;
  return {admitted, loaded.follower->position(), check.digests() - unequal, check.equal_cut(), d,
          &config};
}

}  // namespace

ReplayReport run_replay(const LoadedRecording& loaded, ReplayRequest request) {
  ReplayReport report;
  Prepared prepared;
  report.problem = prepare(loaded, request, prepared);
  if (!report.problem) return report;
  Config& config = prepared.config;
  open_log(config, request.verbose);
  place_node(config);
  report.first = prepared.behind + 1;
  const bool interactive = request.tool != nullptr && request.tool->interactive();
  Replay replay({loaded.history ? &*loaded.history : nullptr, loaded.follower.get(),
                 *loaded.outputs, *loaded.schedule},
                Index{prepared.to}, std::move(request.tool));
  setup::ProgressWriter line("replays", control::Unit::kEntries);
  std::uint64_t admitted = 0;
  const auto tell = [&] { request.on_progress(progress_of(replay, loaded, admitted, config)); };
  if (request.on_progress) {
    replay.on_progress([&](Index applied) {
      admitted = value(applied);
      tell();
    });
  } else if (!interactive) {
    replay.on_progress([&](Index applied) {
      line.show(value(applied) - prepared.behind, prepared.to - prepared.behind);
    });
  }
  if (!request.valgrind.empty()) replay.go_on();
  const std::int64_t begin_ns = monotonic_ns();
  ExitStatus status;
  {
    Node node(config, -1, replay);
    status = node.run();
  }
  report.took_ns = monotonic_ns() - begin_ns;
  if (request.on_progress) tell();  // the final state
  if (!request.valgrind.empty() && loaded.history) report.valgrind = valgrind_reports(config);
  if (!replay.failure().empty()) replay.failed(replay.failure() + last_words(config));
  fill_report(replay, loaded, request.to == 0, status, report);
  return report;
}

}  // namespace crane::node
