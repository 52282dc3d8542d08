// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dmt/base/clock.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/doctor/machine.h"
#include "runtime/launcher/doctor/scratch.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kProjectQuota = 2;  // PRJQUOTA of linux/quota.h, which excludes sys/quota.h

std::string nearest_directory(fs::path there) {
  std::error_code ignored;
  while (!fs::is_directory(there, ignored) && there.has_relative_path())
    there = there.parent_path();
  return there.string();
}

// The type of the file system at the longest mount point above `path`.
std::string file_system_of(const std::string& path) {
  std::ifstream mounts("/proc/self/mounts");
  std::string found, longest;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, point, type;
    words >> device >> point >> type;
    const bool above = point == "/" || (path + "/").rfind(point + "/", 0) == 0;
    if (!above || point.size() < longest.size()) continue;  // a later mount covers an earlier one
    longest = point;
    found = type;
  }
  return found;
}

// Project quotas limit root, too; user quotas limit all users except root.
void add_quota(int fd, int kind, std::uint32_t id, const char* whose, std::vector<Quota>& quotas) {
#ifdef SYS_quotactl_fd
  dqblk block{};
  constexpr int kType = 8;  // QCMD(), whose first argument glibc shifts out of an int
  const auto command = static_cast<unsigned>(Q_GETQUOTA) << kType | static_cast<unsigned>(kind);
  if (syscall(SYS_quotactl_fd, fd, command, id, &block) != 0) return;
  const std::uint64_t limit =
      block.dqb_bhardlimit != 0 ? block.dqb_bhardlimit : block.dqb_bsoftlimit;
  if (limit != 0) quotas.push_back({limit * BLOCK_SIZE, block.dqb_curspace, whose});
#else
  (void)fd, (void)kind, (void)id, (void)whose, (void)quotas;
#endif
}

std::vector<Quota> quotas_of(const std::string& path) {
  std::vector<Quota> quotas;
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return quotas;
  if (geteuid() != 0) add_quota(fd, USRQUOTA, geteuid(), "of this user", quotas);
  fsxattr attributes{};
  if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) == 0 && attributes.fsx_projid != 0) {
    add_quota(fd, kProjectQuota, attributes.fsx_projid, "of the directory's project", quotas);
  }
  close(fd);
  return quotas;
}

}  // namespace

std::uint64_t Room::usable_bytes() const {
  std::uint64_t usable = free_bytes;
  for (const Quota& q : quotas) usable = std::min(usable, q.limit - std::min(q.limit, q.used));
  return usable;
}

Room look_at_room(const std::string& path) {
  Room room;
  std::error_code ignored;
  room.path = fs::absolute(path, ignored).lexically_normal().string();
  room.there = nearest_directory(room.path);
  room.type = file_system_of(room.there);
  room.in_memory = setup::is_in_memory(room.there);
  struct statvfs info {};
  if (statvfs(room.there.c_str(), &info) == 0) {
    room.free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    if (info.f_files != 0) room.free_inodes = info.f_favail;
  }
  room.quotas = quotas_of(room.there);
  room.write_error = Scratch(room.there).error();
  return room;
}

DiskSpeed measure_fsync(const std::string& directory) {
  constexpr int kWrites = 50;
  constexpr std::int64_t kMostMs = 5'000;
  DiskSpeed speed;
  const Scratch scratch(directory);
  speed.error = scratch.error();
  if (speed.error != 0) return speed;
  const int fd = open((scratch.path() + "/written").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  std::vector<std::int64_t> took;
  const std::array<char, 512> bytes{};
  const std::int64_t end = now_ms() + kMostMs;
  while (fd >= 0 && static_cast<int>(took.size()) < kWrites && now_ms() < end) {
    const std::int64_t begin = monotonic_ns() / 1'000;
    if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        fsync(fd) != 0) {
      break;
    }
    took.push_back(monotonic_ns() / 1'000 - begin);
  }
  if (took.empty()) speed.error = errno;
  if (fd >= 0) close(fd);
  if (took.empty()) return speed;
  std::sort(took.begin(), took.end());
  speed.writes = static_cast<int>(took.size());
  speed.median_us = took[took.size() / 2];
  speed.slowest_us = took.back();
  return speed;
}

std::uint64_t bytes_below(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(directory, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored) && !it->is_symlink(ignored)) bytes += it->file_size(ignored);
  }
  return bytes;
}

}  // namespace crane::launcher
