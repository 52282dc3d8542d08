// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "checkpoint/descriptor.h"
#include "checkpoint/tree.h"
#include "dmt/base/crc.h"

namespace crane::checkpoint {
namespace {

namespace fs = std::filesystem;

// The kernel's attribute: such a directory hides the layers below.
constexpr const char* kOpaque = "trusted.overlay.opaque";

// Makes one directory above a lasting one, with the attributes of the machine's directory, which it
// covers.  The machine may lack that directory if the content came from another machine.
Outcome make_parent(const fs::path& machines, const fs::path& ours) {
  struct stat info {};
  info.st_mode = 0755;
  if (lstat(machines.c_str(), &info) != 0 && errno != ENOENT) {
    return file_error("look at", machines);
  }
  if (mkdir(ours.c_str(), 0700) != 0 && errno != EEXIST) return file_error("make", ours);
  if (lchown(ours.c_str(), info.st_uid, info.st_gid) != 0)
    return file_error("change the owner of", ours);
  if (chmod(ours.c_str(), info.st_mode & 07777) != 0) return file_error("chmod", ours);
  return Done{};
}

// Called last, because new entries change the time.
void set_time(const fs::path& machines, const fs::path& ours) {
  struct stat info {};
  if (lstat(machines.c_str(), &info) != 0) return;
  const timespec times[2] = {info.st_mtim, info.st_mtim};
  (void)utimensat(AT_FDCWD, ours.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

// Calls `fill` to make `path` in `base`, and lets it cover the machine's directory.
template <typename Fill>
Outcome cover(const std::string& path, const std::string& base, Fill&& fill) {
  const fs::path relative = fs::path(path).relative_path();
  fs::path machines = "/", ours = base;
  std::vector<std::pair<fs::path, fs::path>> parents{{machines, ours}};
  for (const auto& part : relative.parent_path()) {
    machines /= part;
    ours /= part;
    if (auto made = make_parent(machines, ours); !made) return made;
    parents.emplace_back(machines, ours);
  }
  const std::string place = base + path;
  if (auto filled = fill(place); !filled) return filled;
  if (setxattr(place.c_str(), kOpaque, "y", 1, 0) != 0) return file_error("cover", place);
  for (auto it = parents.rbegin(); it != parents.rend(); ++it) set_time(it->first, it->second);
  return Done{};
}

Outcome add_directory(const LastingDirectory& one, const std::string& base, Content content) {
  const auto fill = [&](const std::string& place) -> Outcome {
    if (content == Content::kCopied) return copy_tree(one.content, place);
    if (rename(one.content.c_str(), place.c_str()) != 0) return file_error("move", one.content);
    return Done{};
  };
  return cover(one.path, base, fill);
}

// Writes it, and all new directories above it, to disk.
Outcome sync_file_system(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || syncfs(fd.get()) != 0) return file_error("write to disk", path);
  return Done{};
}

// BASE-1: an existing base keeps the name until the new one is complete.
Outcome publish(const std::string& fresh, const std::string& base, Before before) {
  const bool first = access(base.c_str(), F_OK) != 0;
  const unsigned how = first ? RENAME_NOREPLACE : RENAME_EXCHANGE;
  if (!first && before == Before::kStays) return Done{};
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, base.c_str(), how) != 0) {
    if (errno == EEXIST && before == Before::kStays) return Done{};  // another node was faster
    return file_error("publish", base);
  }
  return sync_file_system(base);
}

void update(std::uint64_t& digest, const void* bytes, std::size_t size) {
  digest = crc64(bytes, size, digest);
}

void update_with_inode(std::uint64_t& digest, const std::string& name, const struct stat& info,
                       Times times) {
  update(digest, name.c_str(), name.size() + 1);
  const std::uint64_t size = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  const std::uint64_t numbers[] = {info.st_mode, info.st_uid, info.st_gid, size};
  update(digest, numbers, sizeof numbers);
  if (times == Times::kLeftOut || !S_ISREG(info.st_mode)) return;
  const std::int64_t when[] = {info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  update(digest, when, sizeof when);
}

std::vector<fs::path> all_below(const std::string& path, std::error_code& failed) {
  std::vector<fs::path> all;
  for (auto it = fs::recursive_directory_iterator(path, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    all.push_back(it->path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

void update_with_bytes(std::uint64_t& digest, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char buffer[1 << 16];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    update(digest, buffer, static_cast<std::size_t>(file.gcount()));
  }
}

std::uint64_t digest(const std::string& path, Times times, bool bytes) {
  std::error_code unreadable;
  std::uint64_t digest = 0;
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return 0;
  update_with_inode(digest, "", info, times);
  for (const auto& one : all_below(path, unreadable)) {
    if (lstat(one.c_str(), &info) != 0) continue;  // removed meanwhile
    update_with_inode(digest, one.native().substr(path.size()), info, times);
    if (bytes && S_ISREG(info.st_mode)) update_with_bytes(digest, one);
  }
  return unreadable ? 0 : std::max<std::uint64_t>(digest, 1);
}

}  // namespace

Outcome make_directory_as(const std::string& machines, const std::string& ours) {
  if (auto made = make_parent(machines, ours); !made) return made;
  set_time(machines, ours);
  return Done{};
}

Outcome cover_directory(const std::string& path, const std::string& upper) {
  const auto make = [&](const std::string& place) -> Outcome {
    if (mkdir(place.c_str(), 0700) != 0) return file_error("make", place);
    if (chmod(place.c_str(), 01777) != 0) return file_error("chmod", place);
    const timespec beginning[2] = {};  // the same on all replicas
    (void)utimensat(AT_FDCWD, place.c_str(), beginning, 0);
    return Done{};
  };
  return cover(path, upper, make);
}

Outcome make_base(const std::vector<LastingDirectory>& directories, const std::string& base,
                  Before before, Content content) {
  const std::string fresh = base + ".new-" + std::to_string(getpid());
  std::error_code ignored;
  fs::remove_all(fresh, ignored);
  Outcome made = make_parent("/", fresh);
  for (const auto& one : directories) {
    if (made) made = add_directory(one, fresh, content);
  }
  if (made) made = sync_file_system(fresh);
  if (made) made = publish(fresh, base, before);
  fs::remove_all(fresh, ignored);
  return made;
}

Result<std::vector<std::string>> directories_of_base(const std::string& base) {
  if (access(base.c_str(), F_OK) != 0) return file_error("look at", base);
  std::vector<std::string> found;
  std::error_code failed;
  for (auto it = fs::recursive_directory_iterator(base, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    if (getxattr(it->path().c_str(), kOpaque, nullptr, 0) <= 0) continue;
    found.push_back(it->path().native().substr(base.size()));
    it.disable_recursion_pending();
  }
  if (failed) {
    errno = failed.value();
    return file_error("list", base);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::uint64_t digest_of_tree(const std::string& path, Times times) {
  return digest(path, times, false);
}

std::uint64_t digest_of_content(const std::string& path) {
  return digest(path, Times::kLeftOut, true);
}

}  // namespace crane::checkpoint
