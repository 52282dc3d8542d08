// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/machine_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "checkpoint/base.h"
#include "checkpoint/container_supervisor.h"
#include "checkpoint/descriptor.h"
#include "checkpoint/fault_points.h"
#include "checkpoint/link_tree.h"
#include "checkpoint/tree.h"
#include "dmt/base/crc.h"

namespace crane::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecordMax = 1 << 16, kListMax = 1 << 28;
// The parts of a state, and the directories of a part.
constexpr const char* kPrograms = "usr";
constexpr const char* kSettings = "etc";
constexpr const char* kLinked[] = {"usr", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};
constexpr const char* kGone = "gone-";  // prefix of a part that is being removed
constexpr const char* kList = ".list";
constexpr const char* kTemporary = ".tmp";  // suffix of write_file()'s temporary files
constexpr int kLowestPriority = 19;
// How often to try again when a package is installed while its files are linked.
constexpr int kTriesMax = 3;

std::vector<std::string> lines_of(const std::string& path, std::size_t limit) {
  const auto text = read_file(path, limit);
  std::vector<std::string> lines;
  if (!text.ok()) return lines;
  std::istringstream in(text.value());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool is_real_directory(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

class Store {
 public:
  Store(std::string place, std::string machine)
      : place_(std::move(place)), machine_(std::move(machine)) {
    if (machine_.ends_with('/')) machine_.pop_back();
  }

  Outcome open();
  Outcome update_state(GroupFiles& files);
  bool is_whole(const std::string& state) const;
  bool is_current(const std::string& state) const;
  std::vector<std::string> layers(const std::string& state) const;
  Outcome add_user(const std::string& record);
  void remove_unused(const GroupFiles& files);

 private:
  // "usr-3", "etc-1" of a state "usr-3+etc-1"
  static std::vector<std::string> parts(const std::string& state);
  std::string at(const std::string& part) const { return place_ + "/" + part; }
  std::string list_of(const std::string& part) const { return at(part) + kList; }
  bool is_current_part(const std::string& part) const;
  std::string newest(const std::string& kind) const;
  Result<std::string> current_part(const std::string& kind, std::size_t& made);
  Outcome make(const std::string& kind, const std::string& part, std::size_t& made);
  Outcome link_programs(const std::string& part, std::size_t& made);
  Outcome copy_settings(const std::string& part, std::size_t& made);
  void remove_part(const std::string& part) const;
  std::set<std::string> used() const;

  std::string place_, machine_;
  Descriptor lock_;
};

Outcome Store::open() {
  std::error_code failed;
  fs::create_directories(place_ + "/users", failed);
  if (failed) {
    errno = failed.value();
    return file_error("make", place_ + "/users");
  }
  if (chmod(place_.c_str(), 0700) != 0) return file_error("chmod", place_);
  lock_ = Descriptor(::open(place_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_) return file_error("open", place_);
  while (flock(lock_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return file_error("lock", place_);
  }
  return Done{};
}

std::vector<std::string> Store::parts(const std::string& state) {
  std::vector<std::string> found;
  std::istringstream in(state);
  for (std::string part; std::getline(in, part, '+');) found.push_back(part);
  return found;
}

bool Store::is_whole(const std::string& state) const {
  const auto all = parts(state);
  return std::all_of(all.begin(), all.end(), [this](const std::string& part) {
    return access(list_of(part).c_str(), F_OK) == 0 && is_real_directory(at(part));
  });
}

std::vector<std::string> Store::layers(const std::string& state) const {
  std::vector<std::string> found;
  for (const auto& part : parts(state)) found.push_back(at(part));
  return found;
}

bool Store::is_current(const std::string& state) const {
  const auto all = parts(state);
  return std::all_of(all.begin(), all.end(),
                     [this](const std::string& part) { return is_current_part(part); });
}

bool Store::is_current_part(const std::string& part) const {
  const auto lines = lines_of(list_of(part), kListMax);
  if (part.starts_with(kSettings)) {
    const std::uint64_t now = digest_of_tree(machine_ + "/etc", Times::kCounted);
    return lines.size() == 1 && lines[0] == fmt::format("{:016x}", now);
  }
  std::vector<DirectoryTime> directories;
  for (const auto& line : lines) {
    const auto space = line.find(' ');
    if (space == std::string::npos) return false;
    DirectoryTime one{line.substr(space + 1)};
    std::from_chars(line.data(), line.data() + space, one.ns);
    directories.push_back(std::move(one));
  }
  return !directories.empty() && is_as_linked(directories);
}

int number_of(const std::string& kind, const std::string& name) {
  int number = -1;
  if (!name.starts_with(kind + "-")) return number;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kind.size() + 1, end, number);
  return read.ptr == end ? number : -1;
}

bool is_part_name(const std::string& name) {
  return number_of(kPrograms, name) > 0 || number_of(kSettings, name) > 0;
}

std::string Store::newest(const std::string& kind) const {
  int found = 0;
  std::error_code ignored;
  for (const auto& one : fs::directory_iterator(place_, ignored)) {
    found = std::max(found, number_of(kind, one.path().filename()));
  }
  return fmt::format("{}-{}", kind, found);
}

Outcome Store::link_programs(const std::string& part, std::size_t& made) {
  LinkedTree linked;
  for (const char* const top : kLinked) {
    const std::string from = machine_ + "/" + top, to = at(part) + "/" + top;
    if (!is_real_directory(from)) continue;
    if (auto done = link_tree(from, to, place_, linked); !done) {
      // A separate file system: the server reads it from the machine, like every mount.
      if (done.error().code == Code::kUnsupported && std::string(top) != kPrograms) {
        remove_tree(to);
        continue;
      }
      return done;
    }
    fault_point("state.linking");
  }
  std::string list;
  for (const auto& one : linked.directories) list += fmt::format("{} {}\n", one.ns, one.path);
  made = linked.names;
  fault_point("state.linked");
  return write_file(list_of(part), list, "state.list");
}

Outcome Store::copy_settings(const std::string& part, std::size_t& made) {
  const std::string from = machine_ + "/etc", to = at(part) + "/etc";
  const std::uint64_t before = digest_of_tree(from, Times::kCounted);
  if (auto copied = copy_tree(from, to); !copied) return copied;
  made = std::max<std::size_t>(made, 1);
  fault_point("state.linked");
  return write_file(list_of(part), fmt::format("{:016x}\n", before), "state.list");
}

// Removes the list first: without a list the part is never used (FILES-4).
void Store::remove_part(const std::string& part) const {
  unlink(list_of(part).c_str());
  fault_point("state.again");
  remove_tree(at(part));
}

Outcome Store::make(const std::string& kind, const std::string& part, std::size_t& made) {
  Outcome done = Done{};
  for (int i = 0; i < kTriesMax; ++i) {
    remove_part(part);
    if (mkdir(at(part).c_str(), 0755) != 0) return file_error("make", at(part));
    done = kind == kPrograms ? link_programs(part, made) : copy_settings(part, made);
    if (done) fault_point("state.listed");
    if (done && is_current_part(part)) break;
    if (!done && done.error().code != Code::kDamaged && done.error().code != Code::kNotFound) break;
  }
  if (!done) remove_part(part);
  return done;
}

Result<std::string> Store::current_part(const std::string& kind, std::size_t& made) {
  const std::string newest_one = newest(kind);
  if (access(list_of(newest_one).c_str(), F_OK) == 0 && is_current_part(newest_one))
    return newest_one;
  const std::string part = fmt::format("{}-{}", kind, number_of(kind, newest_one) + 1);
  if (auto done = make(kind, part, made); !done) return done.error();
  return part;
}

Outcome Store::update_state(GroupFiles& files) {
  const auto settings = current_part(kSettings, files.made_names);
  if (!settings.ok()) return settings.error();
  const auto programs = current_part(kPrograms, files.made_names);
  if (!programs.ok()) return programs.error();
  files.state = settings.value() + "+" + programs.value();
  files.layers = layers(files.state);
  files.newest = true;
  return Done{};
}

// FILES-3.  A missing record belonged to a group that is gone.
std::set<std::string> Store::used() const {
  std::set<std::string> found;
  std::error_code ignored;
  for (const auto& user : fs::directory_iterator(place_ + "/users", ignored)) {
    const auto record = fs::read_symlink(user.path(), ignored);
    if (access(record.c_str(), F_OK) != 0) {
      unlink(user.path().c_str());
      continue;
    }
    for (const auto& line : lines_of(record, kRecordMax)) {
      for (const auto& part : parts(line)) found.insert(part);
    }
  }
  return found;
}

// Removing a tree of links takes as long as making it, so a separate process does it and the caller
// does not wait.  The next start removes the rest.
void Store::remove_unused(const GroupFiles& files) {
  std::error_code ignored;
  std::vector<std::string> all, gone;
  for (const auto& one : fs::directory_iterator(place_, ignored)) {
    all.push_back(one.path().filename());
  }
  std::set<std::string> keep = used();
  for (const auto& part : parts(files.state)) keep.insert(part);
  for (const auto& name : all) {
    if (name.starts_with(kGone)) gone.push_back(name);
    // Left by killed processes: lists without a part, and temporary files.
    const bool list = name.ends_with(kList) && !is_real_directory(at(fs::path(name).stem()));
    if (list || name.ends_with(kTemporary)) unlink(at(name).c_str());
    if (!is_part_name(name) || keep.contains(name)) continue;
    unlink(list_of(name).c_str());
    gone.push_back(kGone + name);
    rename(at(name).c_str(), at(gone.back()).c_str());
    fault_point("state.renamed");
  }
  if (gone.empty()) return;
  const pid_t child = fork();
  if (child > 0) waitpid(child, nullptr, 0);
  if (child != 0) return;
  if (fork() != 0) _exit(0);
  close_range(0, ~0U, 0);
  // An operator who finds it after the end of all groups sees that it is no crane-run.
  prctl(PR_SET_NAME, "crane-old-files");
  (void)nice(kLowestPriority);
  fault_point("state.removing");
  for (const auto& name : gone) remove_tree(at(name));
  _exit(0);
}

Outcome Store::add_user(const std::string& record) {
  const std::string user =
      fmt::format("{}/users/{:016x}", place_, crc64(record.data(), record.size(), 0));
  if (symlink(record.c_str(), user.c_str()) != 0 && errno != EEXIST) {
    return file_error("make", user);
  }
  return Done{};
}

GroupFiles live_files(const std::string& why) {
  GroupFiles files;
  files.state = kLiveFiles;
  files.why_live = why;
  return files;
}

Outcome write_record(const std::string& record, std::vector<std::string> lines,
                     std::size_t generation, const std::string& state) {
  // A host that missed an upgrade has no line of its generation: it uses the line before.
  while (lines.size() <= generation) lines.push_back(lines.empty() ? state : lines.back());
  lines[generation] = state;
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return write_file(record, text);
}

}  // namespace

std::vector<std::string> parts_of_state(const std::string& machine) {
  const std::string root = machine.ends_with('/') ? machine : machine + "/";
  std::vector<std::string> found;
  for (const char* const top : kLinked) {
    if (is_real_directory(root + top)) found.push_back(std::string("/") + top);
  }
  if (is_real_directory(root + kSettings)) found.push_back(std::string("/") + kSettings);
  return found;
}

Result<std::string> place_of_files(const std::string& machine) {
  const std::string root = machine.ends_with('/') ? machine : machine + "/";
  struct stat programs {};
  if (geteuid() != 0) return failure(Code::kUnsupported, "files", "it needs root privilege");
  if (is_on_overlay(root)) {
    return failure(Code::kUnsupported, "files", "the root of this machine is an overlay itself");
  }
  if (stat((root + "usr").c_str(), &programs) != 0) {
    return failure(Code::kUnsupported, "files", "there is no " + root + "usr");
  }
  for (const char* const above : {"var/lib", "", "usr"}) {
    struct stat info {};
    const std::string place = root + above;
    if (stat(place.c_str(), &info) != 0 || info.st_dev != programs.st_dev) continue;
    return place + (std::string(above) == "var/lib" ? "/crane/.files" : "/.crane-files");
  }
  return failure(Code::kUnsupported, "files", root + "usr is on a separate file system");
}

Result<GroupFiles> recorded_files(const std::string& record, std::size_t generation,
                                  const std::string& machine) {
  const auto lines = lines_of(record, kRecordMax);
  if (lines.size() <= generation) {
    return failure(Code::kNotFound, "files",
                   fmt::format("{} has no generation {}", record, generation));
  }
  if (lines[generation] == kLiveFiles) return live_files("it was so when the group began");
  const auto place = place_of_files(machine);
  if (!place.ok()) return place.error();
  const Store store(place.value(), machine);
  if (!store.is_whole(lines[generation])) {
    return failure(
        Code::kGone, "files",
        fmt::format("{} of {} is gone from {}", lines[generation], record, place.value()));
  }
  GroupFiles files;
  files.state = lines[generation];
  files.layers = store.layers(files.state);
  return files;
}

Result<GroupFiles> ensure_files(const std::string& record, std::size_t generation,
                                const std::string& machine) {
  auto held = recorded_files(record, generation, machine);
  if (held.ok()) return held;
  const auto place = place_of_files(machine);
  std::optional<Store> store;
  Outcome kept = Done{};
  if (place.ok()) {
    store.emplace(place.value(), machine);
    kept = store->open();
    held = recorded_files(record, generation, machine);  // another replica was faster
    if (held.ok()) return held;
  } else {
    kept = place.error();
  }
  GroupFiles files;
  if (kept) kept = store->update_state(files);
  if (!kept) files = live_files(kept.error().message());
  files.lost = held.error().code == Code::kGone;
  // FILES-3: register the user first, so that every record has one.
  if (kept) {
    if (auto added = store->add_user(record); !added) return added.error();
    fault_point("state.used");
  }
  const auto lines = lines_of(record, kRecordMax);
  if (auto written = write_record(record, lines, generation, files.state); !written)
    return written.error();
  fault_point("state.noted");
  if (kept) store->remove_unused(files);
  return files;
}

Result<NextFiles> next_files(const std::string& record, std::size_t now,
                             const std::string& machine) {
  auto held = ensure_files(record, now, machine);
  if (!held.ok()) return held.error();
  NextFiles next{now, held.value()};
  if (next.files.layers.empty() || is_current(next.files, machine)) return next;
  next.generation = lines_of(record, kRecordMax).size();
  held = ensure_files(record, next.generation, machine);
  if (!held.ok()) return held.error();
  next.files = held.value();
  if (next.files.layers.empty()) return failure(Code::kSystem, "files", next.files.why_live);
  return next;
}

bool is_current(const GroupFiles& files, const std::string& machine) {
  const auto place = place_of_files(machine);
  return files.layers.empty() ||
         (place.ok() && Store(place.value(), machine).is_current(files.state));
}

std::vector<std::string> written_in_place(const GroupFiles& files, std::size_t most) {
  std::vector<std::string> found;
  for (const auto& layer : files.layers) {
    struct stat made {};
    if (lstat((layer + ".list").c_str(), &made) != 0) continue;
    std::error_code failed;
    for (auto it = fs::recursive_directory_iterator(layer, failed);
         !failed && it != fs::recursive_directory_iterator() && found.size() < most;
         it.increment(failed)) {
      struct stat info {};
      if (lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      const bool later = std::pair(info.st_mtim.tv_sec, info.st_mtim.tv_nsec) >
                         std::pair(made.st_mtim.tv_sec, made.st_mtim.tv_nsec);
      if (later) found.push_back(it->path().native().substr(layer.size()));
    }
  }
  return found;
}

std::string located(const GroupFiles& files, const std::string& path) {
  const auto here = [&files](const std::string& seen) {
    for (const auto& layer : files.layers) {
      const auto end = seen.find('/', 1);
      if (is_real_directory(layer + seen.substr(0, end))) return layer + seen;
    }
    return seen;
  };
  constexpr int kLinksMax = 40;
  std::string done;
  std::string rest = path;
  for (int links = 0; !rest.empty() && links < kLinksMax;) {
    const auto end = rest.find('/', 1);
    const std::string next = done + rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end);
    std::error_code none;
    const auto target = fs::read_symlink(here(next), none);
    if (none) {
      done = next;
      continue;
    }
    ++links;
    const fs::path whole = target.is_absolute() ? target : fs::path(done + "/") / target;
    rest = whole.lexically_normal().native() + rest;
    done.clear();
  }
  return here(done);
}

}  // namespace crane::checkpoint
