// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/data_in_use.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dmt/base/read_text.h"

namespace crane::setup {
namespace {

namespace fs = std::filesystem;

struct FileId {
  std::uint32_t major = 0, minor = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileId&) const = default;
};

// Asks no server of a network file system, which may not answer.
std::optional<FileId> id_of(const std::string& path) {
  struct statx info {};
  if (statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &info) != 0) {
    return std::nullopt;
  }
  return FileId{info.stx_dev_major, info.stx_dev_minor, info.stx_ino};
}

// Whether `path`, below `root`, is the file `id` and is in `directory`.
bool is_in(const std::string& root, const std::string& path, const FileId& id,
           const FileId& directory) {
  if (id_of(root + path) != id) return false;
  for (fs::path above = fs::path(path).parent_path();; above = above.parent_path()) {
    if (id_of(root + above.string()) == directory) return true;
    if (!above.has_relative_path()) return false;
  }
}

// One process, and the directory in question.
class Look {
 public:
  Look(std::string process, std::string path, const FileId& directory)
      : process_(std::move(process)), path_(std::move(path)), directory_(directory) {}

  std::optional<std::string> open_file() const;
  std::optional<std::string> mapped_file() const;

 private:
  bool maps(const WritableMapping& mapping) const;
  // The kernel reports a path from this process's root if its mounts have the file, else from the
  // root of the other process's mounts.
  bool holds(const std::string& path, const FileId& id) const {
    // Other devices can only be mounted below the directory.
    const bool near = (id.major == directory_.major && id.minor == directory_.minor) ||
                      path.starts_with(path_ + "/");
    return near &&
           (is_in("", path, id, directory_) || is_in(process_ + "/root", path, id, directory_));
  }

  const std::string process_;  // /proc/PID
  const std::string path_;
  const FileId directory_;
};

std::optional<std::string> Look::open_file() const {
  std::error_code failed;
  for (fs::directory_iterator all(process_ + "/fd", failed), end; !failed && all != end;
       all.increment(failed)) {
    std::error_code gone;
    const std::string path = fs::read_symlink(all->path(), gone).string();
    if (gone || path.empty() || path[0] != '/') continue;  // a socket, a pipe
    const std::string number = all->path().filename().string();
    if (!can_write(text_of_file(process_ + "/fdinfo/" + number))) continue;
    const auto id = id_of(all->path().string());
    if (id && holds(path, *id)) return path;
  }
  return std::nullopt;
}

bool Look::maps(const WritableMapping& mapping) const {
  if (const auto seen = id_of(process_ + "/map_files/" + mapping.range)) {
    return holds(mapping.path, *seen);
  }
  // Only privileged processes can look there.  The device in `maps` may be that of a file system
  // below an overlay, or none that stat(2) reports (btrfs), but the inode is the same.
  for (const std::string& root : {std::string(), process_ + "/root"}) {
    const auto named = id_of(root + mapping.path);
    if (named && named->inode == mapping.inode && holds(mapping.path, *named)) return true;
  }
  return false;
}

std::optional<std::string> Look::mapped_file() const {
  std::ifstream all(process_ + "/maps");
  for (std::string line; std::getline(all, line);) {
    const auto mapping = writable_mapping(line);
    if (mapping && maps(*mapping)) return mapping->path;
  }
  return std::nullopt;
}

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

std::string name_of(const std::string& process) {
  std::string name = text_of_file(process + "/comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace

bool can_write(const std::string& fdinfo) {
  std::istringstream lines(fdinfo);
  for (std::string line; std::getline(lines, line);) {
    unsigned flags = 0;
    if (std::sscanf(line.c_str(), "flags: %o", &flags) != 1) continue;
    const auto mode = static_cast<int>(flags & O_ACCMODE);
    return (flags & O_PATH) == 0 && (mode == O_WRONLY || mode == O_RDWR);
  }
  return false;
}

std::optional<WritableMapping> writable_mapping(const std::string& line) {
  unsigned long from = 0, to = 0;
  unsigned long long inode = 0;
  char rights[8] = "";
  int begin = -1;
  const int got =
      std::sscanf(line.c_str(), "%lx-%lx %7s %*s %*s %llu %n", &from, &to, rights, &inode, &begin);
  if (got != 4 || begin < 0 || rights[1] != 'w' || rights[3] != 's') return std::nullopt;
  char range[40];
  std::snprintf(range, sizeof range, "%lx-%lx", from, to);
  const std::string path = line.substr(static_cast<std::size_t>(begin));
  if (path.empty() || path[0] != '/') return std::nullopt;
  return WritableMapping{range, inode, path};
}

std::optional<Writer> find_writer(const std::string& directory) {
  std::error_code failed;
  const std::string path = fs::weakly_canonical(directory, failed).string();
  const auto id = id_of(path);
  if (failed || !id) return std::nullopt;
  const std::string own = std::to_string(getpid());
  for (fs::directory_iterator all("/proc", failed), end; !failed && all != end;
       all.increment(failed)) {
    const std::string pid = all->path().filename().string();
    if (!is_number(pid) || pid == own) continue;
    const std::string process = all->path().string();
    const Look look(process, path, *id);
    const auto open = look.open_file();
    const auto mapped = open ? std::nullopt : look.mapped_file();
    if (!open && !mapped) continue;
    return Writer{static_cast<pid_t>(std::stoi(pid)), name_of(process), open ? *open : *mapped,
                  mapped.has_value()};
  }
  return std::nullopt;
}

Outcome check_not_in_use(const std::vector<std::string>& data, const std::string& base) {
  for (const std::string& one : data) {
    std::error_code ignored;
    if (fs::is_directory(base + one, ignored)) continue;
    const auto writer = find_writer(one);
    if (!writer) continue;
    return failure(Status::kDataInUse, "the data are in use", one,
                   "process " + std::to_string(writer->pid) + " (" + writer->process + ") has " +
                       writer->file + (writer->maps ? " mapped" : " open") + " for writing",
                   "stop it, because the group begins with a copy of that directory");
  }
  return Done{};
}

}  // namespace crane::setup
