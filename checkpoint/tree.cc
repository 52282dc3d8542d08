// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

namespace crane::checkpoint {
namespace {

class Walk {
 public:
  Walk(TreeSink& sink, std::span<const FileRange> left_out = {})
      : sink_(sink), left_out_(left_out), piece_(kPieceMax) {}

  // `name` in the directory `at`; the sink gets the name `shown`.
  Outcome entry(int at, const std::string& name, const std::string& shown, const std::string& path,
                std::size_t depth);

 private:
  Outcome contents(int at, const std::string& name, const std::string& path, std::size_t depth);
  Outcome file(int fd, const std::string& path, std::uint64_t size);
  Outcome extents(int fd, const std::string& path, FileRange all);
  Outcome extent(int fd, const std::string& path, std::uint64_t from, std::uint64_t to);
  Outcome attributes(int at, const std::string& name, const std::string& path, Inode& inode);
  Outcome target(int at, const std::string& name, const std::string& path, Inode& inode);

  TreeSink& sink_;
  std::span<const FileRange> left_out_;
  std::vector<std::byte> piece_;
  std::map<std::pair<dev_t, ino_t>, std::uint32_t> links_;
};

Outcome Walk::entry(int at, const std::string& name, const std::string& shown,
                    const std::string& path, std::size_t depth) {
  struct stat s {};
  if (::fstatat(at, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) {
    return file_error("look at", path);
  }
  Inode inode;
  inode.mode = s.st_mode;
  inode.uid = s.st_uid;
  inode.gid = s.st_gid;
  inode.mtime_s = s.st_mtim.tv_sec;
  inode.mtime_ns = static_cast<std::uint32_t>(s.st_mtim.tv_nsec);
  if (S_ISCHR(s.st_mode) || S_ISBLK(s.st_mode)) inode.device = s.st_rdev;
  if (S_ISREG(s.st_mode)) inode.size = static_cast<std::uint64_t>(s.st_size);
  if (!S_ISDIR(s.st_mode) && s.st_nlink > 1) {
    const auto next = static_cast<std::uint32_t>(links_.size() + 1);
    const auto [where, is_new] = links_.try_emplace({s.st_dev, s.st_ino}, next);
    if (!is_new) return sink_.link(shown, where->second);
    inode.link = next;
  }
  if (S_ISLNK(s.st_mode)) {
    if (auto read = target(at, name, path, inode); !read) return read;
  }
  if (auto read = attributes(at, name, path, inode); !read) return read;
  if (auto passed = sink_.inode(shown, inode); !passed) return passed;
  if (S_ISREG(s.st_mode)) {
    const Descriptor fd(::openat(at, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return file_error("open", path);
    if (auto read = file(fd.get(), path, inode.size); !read) return read;
    return sink_.leave();
  }
  if (S_ISDIR(s.st_mode)) {
    if (auto read = contents(at, name, path, depth); !read) return read;
    return sink_.leave();
  }
  return Done{};
}

Outcome Walk::target(int at, const std::string& name, const std::string& path, Inode& inode) {
  inode.target.resize(PATH_MAX);
  const ssize_t n = ::readlinkat(at, name.c_str(), inode.target.data(), inode.target.size());
  if (n < 0) return file_error("read the link", path);
  inode.target.resize(static_cast<std::size_t>(n));
  return Done{};
}

Outcome Walk::contents(int at, const std::string& name, const std::string& path,
                       std::size_t depth) {
  if (depth >= kDepthMax) {
    return failure(Code::kUnsupported, "walk",
                   path + " is deeper than " + std::to_string(kDepthMax) + " directories");
  }
  const Descriptor fd(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const int listing = fd ? ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3) : -1;
  DIR* const stream = listing >= 0 ? ::fdopendir(listing) : nullptr;
  if (stream == nullptr) {
    const Error failed = file_error("open", path);
    if (listing >= 0) ::close(listing);
    return failed;
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* e = ::readdir(stream)) {
    if (std::strcmp(e->d_name, ".") != 0 && std::strcmp(e->d_name, "..") != 0) {
      names.emplace_back(e->d_name);
    }
  }
  const int failure = errno;
  ::closedir(stream);
  errno = failure;
  if (failure != 0) return file_error("list", path);
  std::sort(names.begin(), names.end());
  for (const std::string& n : names) {
    if (auto passed = entry(fd.get(), n, n, path + "/" + n, depth + 1); !passed) return passed;
  }
  return Done{};
}

Outcome Walk::file(int fd, const std::string& path, std::uint64_t size) {
  const auto end = static_cast<off_t>(size);
  for (off_t at = 0; at < end;) {
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    const off_t hole = data < 0 ? -1 : ::lseek(fd, data, SEEK_HOLE);
    if (data < 0 || hole < 0) return file_error("look for the holes of", path);
    const off_t to = std::min(hole, end);
    if (data >= to) break;
    if (auto passed =
            extents(fd, path, {static_cast<std::uint64_t>(data), static_cast<std::uint64_t>(to)});
        !passed) {
      return passed;
    }
    at = to;
  }
  return Done{};
}

// Passes the data that is not in `left_out_`.
Outcome Walk::extents(int fd, const std::string& path, FileRange all) {
  for (const FileRange& out : left_out_) {
    if (out.to <= all.from) continue;
    if (out.from >= all.to) break;
    if (auto passed = extent(fd, path, all.from, out.from); !passed) return passed;
    all.from = out.to;
  }
  return extent(fd, path, all.from, all.to);
}

Outcome Walk::extent(int fd, const std::string& path, std::uint64_t from, std::uint64_t to) {
  if (from >= to) return Done{};
  if (::lseek(fd, static_cast<off_t>(from), SEEK_SET) < 0) return file_error("seek in", path);
  while (from < to) {
    const std::size_t wanted = std::min<std::uint64_t>(piece_.size(), to - from);
    const ssize_t n = read_all(fd, piece_.data(), wanted);
    if (n < 0) return file_error("read", path);
    if (static_cast<std::size_t>(n) != wanted) {
      return failure(Code::kDamaged, "read", path + " became shorter while it was read");
    }
    if (auto passed = sink_.data(from, {piece_.data(), wanted}); !passed) return passed;
    from += wanted;
  }
  return Done{};
}

Outcome Walk::attributes(int at, const std::string& name, const std::string& path, Inode& inode) {
  // There are no *xattrat calls before Linux 6.13, so use a path through the open directory.
  const std::string via =
      at == AT_FDCWD ? name : "/proc/self/fd/" + std::to_string(at) + "/" + name;
  std::vector<char> list(1 << 16);
  const ssize_t size = ::llistxattr(via.c_str(), list.data(), list.size());
  if (size < 0 && errno == ENOTSUP) return Done{};
  if (size < 0) return file_error("list the attributes of", path);
  std::vector<char> value(1 << 16);
  for (ssize_t i = 0; i < size;) {
    const std::string attribute = &list[static_cast<std::size_t>(i)];
    i += static_cast<ssize_t>(attribute.size()) + 1;
    const ssize_t n = ::lgetxattr(via.c_str(), attribute.c_str(), value.data(), value.size());
    if (n < 0) return file_error("read an attribute of", path);
    inode.attributes.emplace_back(attribute,
                                  std::string(value.data(), static_cast<std::size_t>(n)));
  }
  std::sort(inode.attributes.begin(), inode.attributes.end());
  return Done{};
}

}  // namespace

bool is_file_name(const std::string& name) {
  constexpr std::string_view kForbidden("/\0", 2);
  return !name.empty() && name.size() <= NAME_MAX && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string::npos;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

Outcome walk(const std::string& path, const std::string& name, TreeSink& sink) {
  return Walk(sink).entry(AT_FDCWD, path, name, path, 0);
}

Outcome copy_tree(const std::string& from, const std::string& to,
                  std::span<const FileRange> left_out) {
  const std::filesystem::path target(to);
  Extractor out(target.parent_path().string());
  return Walk(out, left_out).entry(AT_FDCWD, from, target.filename().string(), from, 0);
}

}  // namespace crane::checkpoint
