// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/lasting.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "checkpoint/base.h"
#include "checkpoint/claim.h"
#include "dmt/base/join.h"
#include "dmt/base/read_text.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/setup/progress_line.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::Position;

// The time that a container supervisor without a node may take to end (checkpoint/container.cc).
constexpr int kAwaitMs = 30'000;
// Each container has its own of these, in memory.
constexpr const char* kFleeting[] = {"/run", "/dev", "/proc", "/sys"};

bool is_within(const std::string& path, const std::string& directory) {
  return path == directory || path.rfind(directory + "/", 0) == 0;
}

// The directories with a server's files, in this order: of a server that has ended; of one that
// ended for a restart on its files (tier restart), from which the next server's are copied; of one
// that was killed with its supervisor.
std::vector<std::string> places_of_files(const std::string& home) {
  std::vector<std::string> places;
  std::error_code ignored;
  if (fs::is_directory(home + "/left", ignored)) places.push_back(home + "/left");
  for (const auto& entry : fs::directory_iterator(home, ignored)) {
    if (entry.path().filename().string().rfind("kept-", 0) == 0) places.push_back(entry.path());
  }
  if (fs::is_directory(home + "/upper", ignored)) places.push_back(home + "/upper");
  return places;
}

std::string command_of(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

auto rank(const Position& p) { return std::tuple(p.index, p.clock); }

std::string place_of(const Position& p) { return "log index " + std::to_string(p.index); }

}  // namespace

Outcome resolve_data(std::vector<std::string>& directories, bool container) {
  for (auto& word : directories) {
    const auto wrong = [&word](const std::string& cause, const std::string& todo) {
      return failure(Status::kUsage, "--data", word, cause, todo);
    };
    if (!container) {
      return wrong("without a container the server writes to the machine's directory itself",
                   "leave out --no-container");
    }
    std::error_code failed;
    const std::string path = fs::weakly_canonical(fs::absolute(word, failed), failed).string();
    if (failed || path.empty()) return wrong(failed.message(), "name a directory");
    if (path == "/") return wrong("it is the whole machine", "name the server's data directory");
    for (const char* fleeting : kFleeting) {
      if (!is_within(path, fleeting)) continue;
      return wrong(path + " is in memory, and empty at each start",
                   "let the server keep its data elsewhere");
    }
    word = path;
  }
  std::sort(directories.begin(), directories.end());
  directories.erase(std::unique(directories.begin(), directories.end()), directories.end());
  for (const auto& inner : directories) {
    for (const auto& outer : directories) {
      if (&inner == &outer || !is_within(inner, outer)) continue;
      return failure(Status::kUsage, "--data", inner, "it is inside " + outer, "leave it out");
    }
  }
  return Done{};
}

// --- data of earlier starts ---------------------------------------------------------------------

Outcome Lasting::read() {
  std::ifstream file(path(kKnownGroupName));
  if (!file) return Done{};
  auto known = parse_known_group(rest_of(file));
  if (known) {
    known_ = std::move(known).value();
    return Done{};
  }
  return failure(
      Status::kDirectory, "cannot use the data of the group", path(kKnownGroupName),
      known.error().text,
      "restore it from a backup, or remove " + home() + " to start over with the machine's files");
}

bool Lasting::has_any(const std::string& name) const {
  for (int i = 0; i < options_.places(); ++i) {
    std::error_code ignored;
    if (fs::exists(path(name + std::to_string(i)), ignored)) return true;
  }
  return false;
}

// Checks that this start has the command and the options of the previous one.
Outcome Lasting::check_command() const {
  const auto wrong = [this](const std::string& cause, const std::string& todo,
                            Status status = Status::kUsage) {
    return failure(status, "cannot continue the group", home(), cause,
                   todo +
                       "; or name another group (--name), or remove that directory to start over "
                       "with the machine's files");
  };
  if (known_->durability != "disk") return Done{};
  if (!options_.on_disk()) {
    return wrong("its log is on disk, but this start has durability memory",
                 "add --durability disk");
  }
  if (known_->replicas != options_.replicas || known_->places != options_.places()) {
    return wrong("it has " + std::to_string(known_->replicas) + " replicas and " +
                     std::to_string(known_->places - known_->replicas) +
                     " places for others, but this start has " + std::to_string(options_.replicas) +
                     " and " + std::to_string(options_.places() - options_.replicas),
                 "start it with as many as before");
  }
  if (known_->data != options_.data) {
    return wrong("its log began with --data " +
                     (known_->data.empty() ? "(no directory)" : joined(known_->data)),
                 "name the same directories");
  }
  if (known_->program != options_.program) {
    return wrong(
        "its log was written by another command: " + command_of(known_->program),
        "start that command, because it replays the log; while it runs, crane-ctl upgrade " +
            options_.name + " -- " + command_of(options_.program) + " switches to this one",
        Status::kOtherCommand);
  }
  std::error_code ignored;
  // If both are missing, the first start did not get as far as a log.
  const bool are_logs_missing = !has_any("store/r") && has_any("member-");
  if (are_logs_missing || (!known_->data.empty() && !fs::exists(base(), ignored))) {
    return wrong(are_logs_missing ? "the logs of all replicas are gone (" + path("store") + ")"
                                  : "the initial content of its data is gone (" + base() + ")",
                 "restore them from a backup");
  }
  return Done{};
}

Outcome Lasting::check_directories() const {
  for (const auto& one : options_.data) {
    if (is_within(home(), one)) {
      return failure(Status::kUsage, "--data", one,
                     "the group's own directory " + home() + " is inside it",
                     "name another with --dir");
    }
    const bool kept =
        known_ && std::find(known_->data.begin(), known_->data.end(), one) != known_->data.end();
    std::error_code ignored;
    if (kept || fs::is_directory(one, ignored)) continue;
    return failure(
        Status::kDirectory, "--data", one,
        fs::exists(one, ignored) ? "it is not a directory" : "there is no such directory",
        "name the directory that the server keeps its data in, or create it");
  }
  return Done{};
}

// --- the data -----------------------------------------------------------------------------------

std::vector<Lasting::Left> Lasting::find_left() const {
  std::vector<Left> all;
  for (int i = 0; i < known_->places; ++i) {
    const std::string home = path("r" + std::to_string(i));
    const auto position = checkpoint::read_position(home);
    if (!position) continue;
    for (const std::string& root : places_of_files(home)) {
      std::error_code ignored;
      const bool whole =
          std::all_of(known_->data.begin(), known_->data.end(), [&](const std::string& directory) {
            return fs::is_directory(fs::symlink_status(root + directory, ignored));
          });
      if (whole) all.push_back({i, root, *position});
      break;
    }
  }
  return all;
}

// Chooses the replica that was furthest ahead.  If several ended at that position, chooses the
// files that most of them have.
std::optional<Lasting::Left> Lasting::choose(std::vector<Left> all) const {
  if (all.empty()) return {};
  const auto furthest = std::max_element(all.begin(), all.end(), [](const Left& a, const Left& b) {
    return rank(a.position) < rank(b.position);
  });
  const Position best = furthest->position;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const Left& l) { return rank(l.position) != rank(best); }),
            all.end());
  std::map<std::uint64_t, int> votes;
  for (Left& left : all) {
    for (const auto& directory : known_->data) {
      left.digest ^= checkpoint::digest_of_tree(left.root + directory, checkpoint::Times::kLeftOut);
    }
    ++votes[left.digest];
  }
  const Left chosen = *std::max_element(all.begin(), all.end(), [&](const Left& a, const Left& b) {
    return std::tuple(a.position.end, votes[a.digest], -a.replica) <
           std::tuple(b.position.end, votes[b.digest], -b.replica);
  });
  if (chosen.position.end != Position::kEnded) return chosen;
  for (const Left& left : all) {
    if (left.digest == chosen.digest || left.position.end != Position::kEnded) continue;
    print_message("data: replica " + std::to_string(left.replica) +
                  " has other files than replica " + std::to_string(chosen.replica) +
                  " at the same " + place_of(best) + ": they are discarded");
  }
  return chosen;
}

void Lasting::report_source(const Left& best, const std::vector<Left>& all) const {
  std::string others;
  for (int i = 0; i < known_->replicas; ++i) {
    const auto left =
        std::find_if(all.begin(), all.end(), [i](const Left& l) { return l.replica == i; });
    const std::string name = "replica " + std::to_string(i);
    if (left == all.end()) {
      others += ", " + name + " has none";
    } else if (rank(left->position) != rank(best.position)) {
      others += ", " + name + " was at " + std::to_string(left->position.index);
    }
  }
  const std::string whose =
      "data: as replica " + std::to_string(best.replica) + " left it at " + place_of(best.position);
  if (best.position.end == Position::kNone) {
    print_message(
        whose + ", the furthest" + others +
        "; the group did not stop cleanly: data that its server had not written to its files are "
        "gone (--durability disk keeps everything that was answered)");
  } else if (best.position.end == Position::kStopped) {
    print_message(whose + others + "; the server did not end in time and was killed");
  } else {
    print_message(whose + (others.empty() ? ", equal on all replicas" : others));
  }
}

void Lasting::remove_left() const {
  const int places = std::max(known_ ? known_->places : 0, options_.places());
  for (int i = 0; i < places; ++i) {
    const std::string home = path("r" + std::to_string(i));
    std::error_code ignored;
    for (const auto& files : places_of_files(home)) fs::remove_all(files, ignored);
    fs::remove(home + "/position", ignored);
  }
}

// Makes the base.  Each directory begins with the files that a server left, else with the previous
// base, else with the machine's content.
Outcome Lasting::begin_with(const std::optional<Left>& best) {
  std::vector<checkpoint::LastingDirectory> directories;
  std::vector<std::string> copied;  // from the machine
  bool as_before = !best;
  for (std::size_t i = 0; i < options_.data.size(); ++i) {
    const std::string& one = options_.data[i];
    const auto old = known_ ? std::find(known_->data.begin(), known_->data.end(), one)
                            : std::vector<std::string>::iterator{};
    std::error_code ignored;
    const bool kept = known_ && old != known_->data.end();
    const std::string before = best ? best->root : base();
    if (kept && fs::is_directory(before + one, ignored)) {
      directories.push_back({one, before + one});
      machines_.push_back(known_->machines[static_cast<std::size_t>(old - known_->data.begin())]);
      continue;
    }
    as_before = false;
    directories.push_back({one, one});
    machines_.push_back(checkpoint::digest_of_tree(one, checkpoint::Times::kCounted));
    copied.push_back(one);
  }
  if (as_before && known_ && known_->data == options_.data) return Done{};
  const auto made = [&] {
    const setup::ProgressLine line("copies the data", 0);
    return checkpoint::make_base(directories, base(), checkpoint::Before::kReplaced);
  }();
  if (!made) {
    const bool full = made.error().code == Code::kFull;
    return failure(full ? Status::kDiskFull : Status::kDirectory,
                   "cannot copy the content of --data", joined(options_.data),
                   made.error().message(),
                   full ? "free space there, or use another place (--dir)" : "check the directory");
  }
  // Not before the copy exists: crane-run may wait for room and try again.
  for (const std::string& one : copied) {
    print_message("data: " + one +
                  " begins with its content on this machine; from now on the group has its "
                  "own copy, in " +
                  home());
  }
  return Done{};
}

// Warns that the group does not read later changes of the machine's directories.
void Lasting::log_changes() const {
  if (!known_) return;
  for (std::size_t i = 0; i < known_->data.size(); ++i) {
    const std::string& one = known_->data[i];
    std::error_code ignored;
    if (!fs::is_directory(one, ignored)) continue;
    const auto now = checkpoint::digest_of_tree(one, checkpoint::Times::kCounted);
    if (now == known_->machines[i]) continue;
    print_message(
        "data: " + one +
        " of this machine has changed since the group copied it; the group continues with its own "
        "copy (to begin with the machine's content again, stop the group and move " +
        home() + " away)");
  }
}

// After a crane-run was killed, nodes and servers may be about to end: waits for them.
Outcome Lasting::await_servers() const {
  for (int i = 0; i < known_->places; ++i) {
    if (checkpoint::await_container_end(checkpoint::container_name(options_.name, i), kAwaitMs)) {
      continue;
    }
    return failure(Status::kGroupExists, "cannot start the group", options_.name,
                   "the server of replica " + std::to_string(i) + " of an earlier start still runs",
                   "end its container supervisor (crane-container), or choose another --name");
  }
  return Done{};
}

Outcome Lasting::take_over() {
  if (known_) {
    if (auto p = await_servers(); !p) return p;
  }
  log_changes();
  if (known_ && known_->durability == "disk") {  // LAST-1
    log_id_ = known_->log_id;
    secret_ = known_->secret;
    machines_ = known_->machines;
    remove_left();
    // Another shell has another environment than the start that the log began with.
    restore_environment(known_->environment, known_->working_directory);
    return Done{};
  }
  std::optional<Left> best;
  if (known_) {
    const auto all = find_left();
    if (best = choose(all); best) report_source(*best, all);
  }
  // The old log ended with the group, so its checkpoints, marks and stores are useless.
  for (int i = 0; i < options_.places(); ++i) {
    std::error_code ignored;
    const std::string number = std::to_string(i);
    fs::remove_all(path("r" + number + "/checkpoints"), ignored);
    fs::remove_all(path("member-" + number), ignored);
    fs::remove_all(path("store/r" + number), ignored);
  }
  if (!options_.data.empty()) {
    if (auto p = begin_with(best); !p) return p;
  }
  if (auto p = write(); !p) return p;
  remove_left();  // LAST-2
  return Done{};
}

Outcome Lasting::write() {
  std::error_code ignored;
  const KnownGroup group{options_.name,
                         log_id_,
                         secret_,
                         options_.on_disk() ? "disk" : "memory",
                         options_.replicas,
                         options_.places(),
                         options_.data,
                         options_.program,
                         environment_of_process(),
                         fs::current_path(ignored).string(),
                         machines_};
  return write_file(path(kKnownGroupName), text_of(group));
}

Outcome Lasting::check() {
  if (!options_.lasts()) return Done{};
  if (auto p = read(); !p) return p;
  if (known_) {
    if (auto p = check_command(); !p) return p;
  }
  return check_directories();
}

Outcome Lasting::open() {
  log_id_ = random_log_id();
  secret_ = random_secret();
  if (!options_.lasts()) return Done{};
  if (options_.on_disk() && setup::is_in_memory(home())) {
    return failure(Status::kDirectory, "--durability disk", home(), "it is in memory (tmpfs)",
                   "name a directory on a disk with --dir");
  }
  if (auto p = check(); !p) return p;
  if (auto p = take_over(); !p) return p;
  print_message((options_.on_disk() ? "log and data last: " : "data last: ") + home());
  return Done{};
}

}  // namespace crane::launcher
