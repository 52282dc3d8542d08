// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/file_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "dmt/inodes.h"

namespace crane::node {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Name = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

// File systems of the container whose content CRIU restores; and places that stand for the other
// layers.  /etc/passwd stands for files that are only in the machine's layer.
constexpr const char* kOwnPlaces[] = {"/run", "/dev"};
constexpr const char* kOtherPlaces[] = {"/",    "/etc",  "/etc/passwd", "/usr",
                                        "/opt", "/proc", "/sys"};

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

// Notes all files below `top`, which the server sees at `root` + `inside`; not other file systems.
void note_tree(Json& names, const std::string& top, const std::string& root,
               const std::string& inside) {
  std::error_code failed;
  const auto options = fs::directory_options::skip_permission_denied;
  // With the slash: "/proc/PID/root" alone is a link of procfs with another inode.
  note(names, inside.empty() ? "/" : inside, root + (inside.empty() ? "/" : inside), false);
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

using Pairs = std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Name>>;

Pairs pairs_of(const Json& before, const Json& now,
               std::map<std::uint64_t, std::uint64_t>& devices) {
  Pairs pairs;
  for (const char* kind : {"descriptors", "paths"}) {
    for (const auto& [key, old] : before.at(kind).items()) {
      const auto found = now.at(kind).find(key);
      if (found == now.at(kind).end()) continue;
      const Name was{old.at(0), old.at(1)}, is{found->at(0), found->at(1)};
      pairs[was.first][was.second] = is;
      // A file in the same layer keeps its inode, as do the other files of its device.
      if (was.second == is.second) devices.emplace(was.first, is.first);
    }
  }
  return pairs;
}

struct Renaming {
  Pairs pairs;
  std::map<std::uint64_t, std::uint64_t> devices;
  const Json* listed = nullptr;  // the paths at the checkpoint
  int root = -1;
};

// Finds the file at `path` in the server's root, if no part of the path is a symbolic link.
bool find_below(int root, const std::string& path, Name& name) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const auto fd = static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
  if (fd < 0) return false;
  struct stat info {};
  const int failed = ::fstat(fd, &info);
  ::close(fd);
  name = {info.st_dev, info.st_ino};
  return failed == 0;
}

bool rename(const Renaming& r, const std::string& path, std::uint64_t& device,
            std::uint64_t& inode) {
  Name name;
  bool found = false;
  if (const auto files = r.pairs.find(device); files != r.pairs.end()) {
    const auto file = files->second.find(inode);
    found = file != files->second.end();
    if (found) name = file->second;
  }
  // A path in the list belonged to another file by then.
  found = found || (!path.empty() && !r.listed->contains(path) && find_below(r.root, path, name));
  if (found) {
    device = name.first;
    inode = name.second;
    return true;
  }
  // Either in the machine's layer, which keeps its inodes, or a removed file of the server's layer.
  if (const auto other = r.devices.find(device); other != r.devices.end()) device = other->second;
  return false;
}

}  // namespace

Json file_names(const std::map<std::uint32_t, pid_t>& server, pid_t first,
                const std::string& upper) {
  const std::string root = "/proc/" + std::to_string(first) + "/root";
  Json paths = Json::object(), descriptors = Json::object();
  for (const char* place : kOtherPlaces) note(paths, place, root + place, false);
  for (const char* place : kOwnPlaces) note_tree(paths, root + place, root, place);
  note_tree(paths, upper, root, "");
  for (const auto& [pid, host_pid] : server) note_descriptors(descriptors, host_pid, pid);
  return {{"paths", std::move(paths)}, {"descriptors", std::move(descriptors)}};
}

Outcome rename_files(dmt::Layout& w, const Json& before, const Json& now, pid_t first) {
  Renaming renaming;
  try {
    renaming.pairs = pairs_of(before, now, renaming.devices);
    renaming.listed = &before.at("paths");
  } catch (const Json::exception&) {
    return Error{Code::kDamaged, 0, "the names of files in a checkpoint"};
  }
  const std::string root = "/proc/" + std::to_string(first) + "/root";
  renaming.root = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (renaming.root < 0) return system_error("open the root of a restored server");
  dmt::rename_inodes(
      w,
      [](void* context, std::string_view path, std::uint64_t& device,
         std::uint64_t& inode) noexcept {
        return rename(*static_cast<const Renaming*>(context), std::string(path), device, inode);
      },
      &renaming);
  ::close(renaming.root);
  return Done{};
}

}  // namespace crane::node
