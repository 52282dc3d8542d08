// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/file_names.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "dmt/inodes.h"
#include "proxy/node/server_pids.h"

namespace crane::node {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Name = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

// File systems of the container's own, whose content CRIU makes anew.  /etc/hostname stands for
// what is in no layer but the machine's.
constexpr const char* kOwnPlaces[] = {"/run", "/dev"};
constexpr const char* kOtherPlaces[] = {"/", "/etc", "/etc/passwd", "/usr", "/proc", "/sys"};

bool name_of(const std::string& path, bool follow, Name& name) {
  struct stat info {};
  const int failed = follow ? ::stat(path.c_str(), &info) : ::lstat(path.c_str(), &info);
  name = {info.st_dev, info.st_ino};
  return failed == 0;
}

void note(Json& names, const std::string& key, const std::string& path, bool follow) {
  Name name;
  if (name_of(path, follow, name)) names[key] = {name.first, name.second};
}

// Everything below `top`, which is `root` + `inside` to the server; not into other file systems.
void note_tree(Json& names, const std::string& top, const std::string& root,
               const std::string& inside) {
  std::error_code failed;
  const auto options = fs::directory_options::skip_permission_denied;
  note(names, inside.empty() ? "/" : inside, root + inside, false);
  for (auto it = fs::recursive_directory_iterator(top, options, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    const std::string path = inside + it->path().native().substr(top.size());
    note(names, path, root + path, false);
  }
}

void note_descriptors(Json& names, pid_t host_pid, std::uint32_t pid) {
  const std::string directory = "/proc/" + std::to_string(host_pid) + "/fd";
  std::error_code failed;
  for (const auto& fd : fs::directory_iterator(directory, failed)) {
    const std::string key = std::to_string(pid) + "/" + fd.path().filename().native();
    note(names, key, fd.path().native(), true);
  }
}

std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Name>> pairs_of(
    const Json& before, const Json& now, std::map<std::uint64_t, std::uint64_t>& devices) {
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Name>> pairs;
  for (const char* kind : {"descriptors", "paths"}) {
    for (const auto& [key, old] : before.at(kind).items()) {
      const auto found = now.at(kind).find(key);
      if (found == now.at(kind).end()) continue;
      const Name was{old.at(0), old.at(1)}, is{found->at(0), found->at(1)};
      pairs[was.first][was.second] = is;
      // A file that is in the same layer of both keeps its inode: so do the others of its device.
      if (was.second == is.second) devices.emplace(was.first, is.first);
    }
  }
  return pairs;
}

}  // namespace

Json file_names(const dmt::Layout& w, pid_t first, const std::string& upper) {
  const std::string root = "/proc/" + std::to_string(first) + "/root";
  Json paths = Json::object(), descriptors = Json::object();
  for (const char* place : kOtherPlaces) note(paths, place, root + place, false);
  for (const char* place : kOwnPlaces) note_tree(paths, root + place, root, place);
  note_tree(paths, upper, root, "");
  for (const auto& [pid, host_pid] : server_pids(w, first)) {
    note_descriptors(descriptors, host_pid, pid);
  }
  return {{"paths", std::move(paths)}, {"descriptors", std::move(descriptors)}};
}

Outcome rename_files(dmt::Layout& w, const Json& before, const Json& now) {
  struct Renaming {
    std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Name>> files;
    std::map<std::uint64_t, std::uint64_t> devices;
  } renaming;
  try {
    renaming.files = pairs_of(before, now, renaming.devices);
  } catch (const Json::exception&) {
    return Error{Code::kDamaged, 0, "the names of files in a checkpoint"};
  }
  dmt::rename_inodes(
      w,
      [](void* context, std::uint64_t& device, std::uint64_t& inode) noexcept {
        const auto& r = *static_cast<const Renaming*>(context);
        const auto files = r.files.find(device);
        if (files != r.files.end()) {
          if (const auto file = files->second.find(inode); file != files->second.end()) {
            device = file->second.first;
            inode = file->second.second;
            return true;
          }
        }
        // Of the machine's layer, where nothing goes away; or the server's own, and gone.
        if (const auto other = r.devices.find(device); other != r.devices.end()) {
          device = other->second;
        }
        return false;
      },
      &renaming);
  return Done{};
}

}  // namespace crane::node
