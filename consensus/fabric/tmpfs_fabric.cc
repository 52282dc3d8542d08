// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/tmpfs_fabric.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace crane::consensus {

using shm::Region;
namespace fs = std::filesystem;

void close_fd(int& fd) noexcept {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

std::uint64_t random_word() noexcept {
  std::uint64_t word = 0;
  CRANE_ASSERT(::getrandom(&word, sizeof word, 0) == sizeof word);
  return word | 1;
}

// --- cells --------------------------------------------------------------------------------------

void Cell::store(const CellValue& v) noexcept {
  const std::uint64_t next = version.load(std::memory_order_relaxed) + 1;
  auto& words = copy[next % 2];
  for (std::size_t i = 0; i < kCellWords; ++i) {
    words[i].store(v.words[i], std::memory_order_relaxed);
  }
  version.store(next, std::memory_order_release);
}

// FABRIC-F10: the writer of version n + 1 uses the other copy, so a value is whole if the version
// did not change during the read.
bool Cell::load(CellValue& out) const noexcept {
  constexpr int kTriesMax = 1000;
  for (int i = 0; i < kTriesMax; ++i) {
    const std::uint64_t seen = version.load(std::memory_order_acquire);
    const auto& words = copy[seen % 2];
    for (std::size_t w = 0; w < kCellWords; ++w) {
      out.words[w] = words[w].load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version.load(std::memory_order_relaxed) == seen) return true;
  }
  return false;
}

// --- files --------------------------------------------------------------------------------------

bool FileFormat::fits(const ControlHead& head, const FabricOptions& options) const noexcept {
  return head.magic == magic && head.version.load(std::memory_order_acquire) == version &&
         head.group == options.group && head.replicas == options.replicas &&
         head.log_bytes == options.log_bytes;
}

TmpfsFabric::~TmpfsFabric() {
  close_fd(epoll_fd_);
  close_fd(lock_fd_);
}

Outcome TmpfsFabric::open_files(const FabricOptions& options, const FileFormat& format) {
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) return system_error("epoll_create1");
  own_dir_ = options.directory_of(options.self);
  if (::mkdir(own_dir_.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("make the replica's directory");
  }
  if (const Outcome locked = take_lock(); !locked) return locked;
  survived_ = reuse(options, format);
  return survived_ ? Outcome{Done{}} : create(options, format);
}

Outcome TmpfsFabric::take_lock() {
  lock_fd_ = ::open((own_dir_ + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return system_error("open the replica's lock");
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return Error{Code::kBusy, errno, "another process runs as this replica"};
  }
  return Done{};
}

bool TmpfsFabric::reuse(const FabricOptions& options, const FileFormat& format) {
  auto control =
      Region::open(own_dir_ + "/control", Region::Access::kReadWrite, format.control_bytes);
  if (!control || !format.fits(*control.value().as<ControlHead>(), options)) return false;
  auto log = Region::open(own_dir_ + "/log", Region::Access::kReadWrite, options.log_bytes,
                          format.log_align);
  if (!log || log.value().size() != options.log_bytes) return false;
  std::error_code unseen;
  if (format.fifo != nullptr && !fs::exists(own_dir_ + "/" + format.fifo, unseen)) return false;
  control_ = std::move(control).value();
  log_ = std::move(log).value();
  return true;
}

Outcome TmpfsFabric::create(const FabricOptions& options, const FileFormat& format) {
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(own_dir_, ignored)) {
    if (file.path().filename() != "lock") fs::remove(file.path(), ignored);
  }
  // The log is allocated as it grows (ROOM-1), but a size that can never fit is refused now.
  struct statvfs space {};
  if (::statvfs(own_dir_.c_str(), &space) == 0 &&
      space.f_bavail * space.f_frsize < options.log_bytes + format.spare_bytes) {
    return Error{Code::kFull, 0, "not enough room for the log memory: choose a smaller ring"};
  }
  auto log =
      Region::create(own_dir_ + "/log", options.log_bytes, shm::Fill::kSparse, format.log_align);
  if (!log) return log.error();
  if (format.fifo != nullptr && ::mkfifo((own_dir_ + "/" + format.fifo).c_str(), 0600) != 0) {
    return system_error("make the doorbell");
  }
  auto control = Region::create(own_dir_ + "/control.new", format.control_bytes, shm::Fill::kWhole);
  if (!control) return control.error();
  control_ = std::move(control).value();
  log_ = std::move(log).value();
  auto* const head = control_.as<ControlHead>();
  head->magic = format.magic;
  head->replicas = options.replicas;
  head->group = options.group;
  head->log_bytes = options.log_bytes;
  return Done{};
}

Outcome TmpfsFabric::publish(const FileFormat& format) {
  if (survived_) return Done{};
  control_.as<ControlHead>()->version.store(format.version, std::memory_order_release);
  const std::string path = own_dir_ + "/control";
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) {
    return system_error("publish the control segment");
  }
  return Done{};
}

Outcome TmpfsFabric::watch(int fd, epoll_data_t tag) noexcept {
  epoll_event want{};
  want.events = EPOLLIN;
  want.data = tag;
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &want) != 0) return system_error("epoll_ctl");
  return Done{};
}

}  // namespace crane::consensus
