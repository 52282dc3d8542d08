// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/find_group.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "runtime/launcher/context_file.h"
#include "runtime/launcher/control_client.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;

bool is_denied(const std::error_code& failure) {
  return failure == std::errc::permission_denied || failure == std::errc::operation_not_permitted;
}

std::vector<std::string> usual_directories() {
  std::vector<std::string> all{setup::default_directory(), setup::lasting_directory()};
  if (all[0] == all[1]) all.pop_back();
  return all;
}

void look_in(const std::string& dir, std::map<std::string, std::string>& found, bool& denied) {
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(dir, failure)) {
    const std::string name = entry.path().filename().string();
    bool hidden = false;
    if (!setup::good_group_name(name)) continue;  // for example the place of a crane-replay
    if (!find_replicas(dir, name, hidden).empty()) found.emplace(name, dir);
    denied = denied || hidden;
  }
  denied = denied || is_denied(failure);
  for (const auto& name : contexts_in(dir, denied)) found.emplace(name, dir);
}

// Finds the running groups, in any directory.
void look_at_homes(std::map<std::string, std::string>& found, bool& denied) {
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(setup::kSharedMemory, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(setup::kSharedPrefix, 0) != 0) continue;
    std::error_code unread;
    const fs::path home = fs::read_symlink(entry.path() / setup::kHome, unread);
    denied = denied || is_denied(unread);
    bool hidden = false;
    if (unread || !setup::good_group_name(home.filename()) ||
        find_replicas(home.parent_path(), home.filename(), hidden).empty())
      continue;
    found.emplace(home.filename(), home.parent_path());
  }
}

}  // namespace

std::vector<FoundGroup> find_groups(const std::string& dir, bool& denied) {
  std::map<std::string, std::string> found;  // the first place counts: that of a running group
  if (!dir.empty()) {
    look_in(dir, found, denied);
  } else {
    look_at_homes(found, denied);
    for (const auto& usual : usual_directories()) look_in(usual, found, denied);
  }
  std::vector<FoundGroup> groups;
  for (const auto& [name, where] : found) groups.push_back({name, where});
  return groups;
}

std::string directory_of(const std::string& dir, const std::string& group, bool& denied) {
  std::vector<std::string> places{dir};
  if (dir.empty()) {
    places = usual_directories();
    std::error_code unread;
    const fs::path home =
        fs::read_symlink(fs::path(setup::shared_directory(group)) / setup::kHome, unread);
    denied = denied || is_denied(unread);
    if (!unread) places.insert(places.begin(), home.parent_path());
  }
  for (const auto& place : places) {
    if (!find_replicas(place, group, denied).empty() || has_context(place, group)) return place;
  }
  return "";
}

bool is_only_elsewhere(const FoundGroup& group) {
  bool denied = false;
  return has_context(group.dir, group.name) && find_replicas(group.dir, group.name, denied).empty();
}

std::string places_of(const std::string& dir) {
  if (!dir.empty()) return dir;
  std::string places;
  for (const auto& usual : usual_directories()) places += usual + ", ";
  return places + "or among those that run (" + setup::kSharedMemory + "/" + setup::kSharedPrefix +
         "*)";
}

}  // namespace crane::launcher
