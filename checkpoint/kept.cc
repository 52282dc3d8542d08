// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kept.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <tuple>

namespace crane::checkpoint {
namespace {

namespace fs = std::filesystem;

// "r12" as 12, anything else as -1.
int number_of(const std::string& name) {
  const bool good =
      name.size() >= 2 && name.size() <= 4 && name[0] == 'r' &&
      std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return good ? std::stoi(name.substr(1)) : -1;
}

}  // namespace

std::map<int, std::string> replica_directories(const std::string& group_directory, bool& denied) {
  std::map<int, std::string> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(group_directory, failure)) {
    const int number = number_of(entry.path().filename().string());
    if (number >= 0) found[number] = entry.path().string();
  }
  denied = failure == std::errc::permission_denied || failure == std::errc::operation_not_permitted;
  return found;
}

bool is_denied(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return !fd && errno == EACCES;
}

const Listed* Newest::look(const std::string& group_directory, const std::string& log_digest) {
  bool hidden = false;
  std::map<std::tuple<std::uint64_t, std::uint64_t, int>, fs::path> there;
  for (const auto& [replica, home] : replica_directories(group_directory, hidden)) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(home + "/checkpoints", failure)) {
      std::uint64_t view = 0, index = 0;
      if (!parse_name(entry.path().filename(), view, index)) continue;
      there[{view, index, -replica}] = entry.path();
    }
  }
  std::erase_if(known_, [&](const auto& known) {
    return std::none_of(there.begin(), there.end(),
                        [&](const auto& one) { return one.second == known.first; });
  });
  const Listed* distrusted = nullptr;
  for (auto one = there.rbegin(); one != there.rend(); ++one) {
    const fs::path& path = one->second;
    Checkpoints place({path.parent_path(), 1, {}});
    auto known = known_.find(path);
    if (known == known_.end()) {
      auto found = place.find(path.filename());
      if (!found) continue;  // removed meanwhile
      known = known_.emplace(path, std::move(found).value()).first;
      known->second.manifest.node_state.clear();  // it may be long, and is not needed
    }
    Listed& listed = known->second;
    if (!listed.belongs_to(log_digest)) continue;
    listed.distrusted = place.is_distrusted(listed.name);  // it may change, unlike a manifest
    if (!listed.distrusted) return &listed;
    if (distrusted == nullptr) distrusted = &listed;
  }
  return distrusted;
}

AllKept find_kept(const std::string& group_directory) {
  AllKept found;
  bool hidden = false;
  const auto deny = [&found](const std::string& path) {
    found.denied = true;
    found.problems.push_back("cannot read the checkpoints: " + path +
                             ": not permitted; run it as the user who started the group");
  };
  for (const auto& [replica, home] : replica_directories(group_directory, hidden)) {
    const std::string directory = home + "/checkpoints";
    if (is_denied(directory)) {
      deny(directory);
      continue;
    }
    Checkpoints place({directory, 1, {}});
    auto listed = place.list();
    if (!listed) {
      found.problems.push_back(listed.error().message());
      continue;
    }
    for (auto& one : listed.value()) {
      if (!one.damage.empty() && is_denied(one.path)) {
        deny(one.path);
      } else {
        found.checkpoints.push_back({replica, std::move(one)});
      }
    }
  }
  const auto key = [](const Kept& kept) {
    std::uint64_t view = 0, index = 0;
    parse_name(kept.listed.name, view, index);
    return std::tuple{view, index, -kept.replica};
  };
  std::sort(found.checkpoints.begin(), found.checkpoints.end(),
            [&](const Kept& a, const Kept& b) { return key(a) > key(b); });
  return found;
}

}  // namespace crane::checkpoint
