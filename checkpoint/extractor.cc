// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "checkpoint/tree.h"

namespace crane::checkpoint {

std::string Extractor::path_of(const std::string& name) const {
  return (open_.empty() ? parent_ : open_.back().path) + "/" + name;
}

Result<int> Extractor::directory() {
  if (!open_.empty()) return open_.back().fd.get();
  if (!root_) root_ = Descriptor(::open(parent_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root_) return file_error("open", parent_);
  return root_.get();
}

Outcome Extractor::inode(const std::string& name, const Inode& inode) {
  const auto at = directory();
  if (!at) return at.error();
  const std::string path = path_of(name);
  if (inode.link != 0) links_[inode.link] = path;
  if (S_ISDIR(inode.mode)) {
    if (open_.size() >= kDepthMax)
      return failure(Code::kUnsupported, "unpack", path + " is nested too deeply");
    if (::mkdirat(at.value(), name.c_str(), 0700) != 0) return file_error("create", path);
    Descriptor fd(
        ::openat(at.value(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return file_error("open", path);
    open_.push_back({std::move(fd), inode, name, path});
    return Done{};
  }
  if (S_ISREG(inode.mode)) {
    Descriptor fd(::openat(at.value(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return file_error("create", path);
    open_.push_back({std::move(fd), inode, name, path});
    return Done{};
  }
  if (auto made = make_special(at.value(), name, inode); !made) return made;
  return set_attributes(name, inode);
}

Outcome Extractor::data(std::uint64_t offset, std::span<const std::byte> bytes) {
  Open& file = open_.back();
  while (!bytes.empty()) {
    const ssize_t n =
        ::pwrite(file.fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error("write", file.path);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  file.end = offset;
  return Done{};
}

Outcome Extractor::leave() {
  const Open last = std::move(open_.back());
  open_.pop_back();
  if (S_ISREG(last.inode.mode) && last.end != last.inode.size &&
      ::ftruncate(last.fd.get(), static_cast<off_t>(last.inode.size)) != 0) {
    return file_error("write", last.path);
  }
  return set_attributes(last.name, last.inode);
}

Outcome Extractor::make_special(int directory, const std::string& name, const Inode& inode) {
  const int made = S_ISLNK(inode.mode)
                       ? ::symlinkat(inode.target.c_str(), directory, name.c_str())
                       : ::mknodat(directory, name.c_str(), (inode.mode & S_IFMT) | 0600,
                                   static_cast<dev_t>(inode.device));
  if (made != 0) return file_error("create", path_of(name));
  return Done{};
}

// A directory gets them when it is complete: new entries would inherit its default ACL and change
// its mtime.  The owner comes first: a change of owner clears set-user-id and capabilities.
Outcome Extractor::set_attributes(const std::string& name, const Inode& inode) {
  const auto at = directory();
  if (!at) return at.error();
  const std::string path = path_of(name);
  if (::fchownat(at.value(), name.c_str(), inode.uid, inode.gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return file_error("give to its owner", path);
  }
  if (!S_ISLNK(inode.mode) && ::fchmodat(at.value(), name.c_str(), inode.mode & 07777, 0) != 0) {
    return file_error("set the mode of", path);
  }
  const std::string via = "/proc/self/fd/" + std::to_string(at.value()) + "/" + name;
  for (const auto& [attribute, value] : inode.attributes) {
    if (::lsetxattr(via.c_str(), attribute.c_str(), value.data(), value.size(), 0) != 0) {
      return file_error("set the attribute", attribute + " of " + path);
    }
  }
  const timespec mtime{static_cast<time_t>(inode.mtime_s), static_cast<long>(inode.mtime_ns)};
  const timespec times[2] = {{0, UTIME_OMIT}, mtime};
  if (::utimensat(at.value(), name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
    return file_error("set the time of", path);
  }
  return Done{};
}

Outcome Extractor::link(const std::string& name, std::uint32_t number) {
  const auto at = directory();
  if (!at) return at.error();
  const auto first = links_.find(number);
  if (first == links_.end()) {
    return failure(Code::kDamaged, "unpack", path_of(name) + " is a link to a missing file");
  }
  if (::linkat(AT_FDCWD, first->second.c_str(), at.value(), name.c_str(), 0) != 0) {
    return file_error("link", path_of(name));
  }
  return Done{};
}

}  // namespace crane::checkpoint
