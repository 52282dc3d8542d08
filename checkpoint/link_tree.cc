// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/link_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "checkpoint/descriptor.h"
#include "checkpoint/tree.h"

namespace crane::checkpoint {
namespace {

std::int64_t ns_of(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

class Linker {
 public:
  Linker(const std::string& left_out, LinkedTree& linked, dev_t device)
      : left_out_(left_out), linked_(linked), device_(device) {}

  Outcome directory(int from, int to, const std::string& path, std::size_t depth);

 private:
  Outcome entry(int from, int to, const dirent& entry, const std::string& path, std::size_t depth);
  Outcome subdirectory(int from, int to, const char* name, const std::string& path,
                       std::size_t depth);
  Outcome link(int from, int to, const char* name, const std::string& path);

  const std::string& left_out_;
  LinkedTree& linked_;
  const dev_t device_;  // of the tree; others are mounted in it
};

Outcome copy_attributes(int from, int to, const std::string& path) {
  std::vector<char> names(1 << 12), value(1 << 16);
  const ssize_t size = flistxattr(from, names.data(), names.size());
  if (size < 0 && errno != ENOTSUP) return file_error("read the attributes of", path);
  for (ssize_t at = 0; at < size;) {
    const char* const name = names.data() + at;
    at += static_cast<ssize_t>(std::strlen(name)) + 1;
    const ssize_t n = fgetxattr(from, name, value.data(), value.size());
    if (n < 0 || fsetxattr(to, name, value.data(), static_cast<std::size_t>(n), 0) != 0) {
      return file_error("copy the attributes of", path);
    }
  }
  return Done{};
}

Outcome set_attributes(int from, int to, const struct stat& info, const std::string& path) {
  if (fchown(to, info.st_uid, info.st_gid) != 0)
    return file_error("change the owner of the copy of", path);
  if (fchmod(to, info.st_mode & 07777) != 0) return file_error("chmod the copy of", path);
  if (auto copied = copy_attributes(from, to, path); !copied) return copied;
  const timespec times[2] = {info.st_mtim, info.st_mtim};
  if (futimens(to, times) != 0) return file_error("set the times of the copy of", path);
  return Done{};
}

Outcome Linker::directory(int from, int to, const std::string& path, std::size_t depth) {
  struct stat info {};
  if (fstat(from, &info) != 0) return file_error("look at", path);
  linked_.directories.push_back({path, ns_of(info.st_mtim)});
  if (info.st_dev == device_ && path != left_out_) {
    const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(dup(from)), closedir);
    if (list == nullptr) return file_error("read", path);
    errno = 0;
    for (const dirent* one = readdir(list.get()); one != nullptr; one = readdir(list.get())) {
      if (std::strcmp(one->d_name, ".") == 0 || std::strcmp(one->d_name, "..") == 0) continue;
      if (auto made = entry(from, to, *one, path, depth); !made) return made;
      errno = 0;
    }
    if (errno != 0) return file_error("read", path);
  }
  return set_attributes(from, to, info, path);
}

Outcome Linker::entry(int from, int to, const dirent& entry, const std::string& path,
                      std::size_t depth) {
  const std::string whole = path + "/" + entry.d_name;
  ++linked_.names;
  bool is_directory = entry.d_type == DT_DIR;
  if (entry.d_type == DT_UNKNOWN) {
    struct stat info {};
    is_directory =
        fstatat(from, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
  }
  return is_directory ? subdirectory(from, to, entry.d_name, whole, depth + 1)
                      : link(from, to, entry.d_name, whole);
}

Outcome Linker::subdirectory(int from, int to, const char* name, const std::string& path,
                             std::size_t depth) {
  if (depth > kDepthMax) {
    return failure(Code::kUnsupported, "link", path + " is nested too deeply");
  }
  const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor original(openat(from, name, how));
  if (!original && errno == ENOENT) return Done{};
  if (!original) return file_error("open", path);
  if (mkdirat(to, name, 0700) != 0) return file_error("make the copy of", path);
  const Descriptor copy(openat(to, name, how));
  if (!copy) return file_error("open the copy of", path);
  return directory(original.get(), copy.get(), path, depth);
}

Outcome Linker::link(int from, int to, const char* name, const std::string& path) {
  if (linkat(from, name, to, name, 0) == 0 || errno == ENOENT) return Done{};
  if (errno == EXDEV) {
    return failure(Code::kUnsupported, "link", path + " is on another file system");
  }
  if (errno != EPERM && errno != EMLINK) return file_error("link", path);
  return copy_tree(path, "/proc/self/fd/" + std::to_string(to) + "/" + name);
}

}  // namespace

Outcome link_tree(const std::string& from, const std::string& to, const std::string& left_out,
                  LinkedTree& linked) {
  const int how = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const Descriptor original(open(from.c_str(), how));
  if (!original) return file_error("open", from);
  if (mkdir(to.c_str(), 0700) != 0) return file_error("make", to);
  const Descriptor copy(open(to.c_str(), how));
  struct stat ours {
  }, theirs{};
  if (!copy || fstat(copy.get(), &ours) != 0 || fstat(original.get(), &theirs) != 0) {
    return file_error("open", to);
  }
  if (ours.st_dev != theirs.st_dev) {
    return failure(Code::kUnsupported, "link",
                   from + " and " + to + " are on different file systems");
  }
  return Linker(left_out, linked, theirs.st_dev).directory(original.get(), copy.get(), from, 0);
}

bool is_as_linked(const std::vector<DirectoryTime>& directories) {
  return std::all_of(directories.begin(), directories.end(), [](const DirectoryTime& one) {
    struct stat info {};
    return lstat(one.path.c_str(), &info) == 0 && ns_of(info.st_mtim) == one.ns;
  });
}

}  // namespace crane::checkpoint
