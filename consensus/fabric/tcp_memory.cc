// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/tcp_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "consensus/fabric/tcp_frame.h"

namespace crane::consensus::tcp {
namespace {

constexpr std::uint64_t kRoomSlack = 1ULL << 20;

}  // namespace

std::uint64_t random_word() noexcept {
  std::uint64_t word = 0;
  CRANE_ASSERT(::getrandom(&word, sizeof word, 0) == sizeof word);
  return word | 1;
}

TcpMemory::~TcpMemory() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

Outcome TcpMemory::open(const std::string& directory, ReplicaId self, std::uint8_t replicas,
                        std::uint64_t group, std::uint64_t log_bytes) {
  dir_ = directory + "/r" + std::to_string(value(self));
  if (::mkdir(dir_.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("make the replica's directory");
  }
  if (const Outcome locked = take_lock(); !locked) return locked;
  survived_ = reuse(replicas, group, log_bytes).ok();
  return survived_ ? Outcome{Done{}} : create(replicas, group, log_bytes);
}

Outcome TcpMemory::take_lock() {
  lock_fd_ = ::open((dir_ + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return system_error("open the replica's lock");
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return Error{Code::kBusy, errno, "another process runs as this replica"};
  }
  return Done{};
}

Outcome TcpMemory::reuse(std::uint8_t replicas, std::uint64_t group, std::uint64_t log_bytes) {
  auto control =
      shm::Region::open(dir_ + "/control", shm::Region::Access::kReadWrite, sizeof(TcpControl));
  if (!control) return control.error();
  const auto* const c = control.value().as<TcpControl>();
  if (c->magic != kTcpControlMagic || c->version != kTcpMemoryVersion || c->group != group ||
      c->replicas != replicas || c->log_bytes != log_bytes) {
    return Error{Code::kWrongVersion, 0, "the memory belongs to another group or version"};
  }
  auto log = shm::Region::open(dir_ + "/log", shm::Region::Access::kReadWrite, log_bytes);
  if (!log) return log.error();
  if (log.value().size() != log_bytes)
    return Error{Code::kDamaged, 0, "the replica's log memory has the wrong size"};
  control_ = std::move(control).value();
  log_ = std::move(log).value();
  return Done{};
}

Outcome TcpMemory::create(std::uint8_t replicas, std::uint64_t group, std::uint64_t log_bytes) {
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(dir_, ignored)) {
    if (file.path().filename() != "lock") std::filesystem::remove(file.path(), ignored);
  }
  // The log is allocated as it grows (ROOM-1), but a size that can never fit is refused now.
  struct statvfs space {};
  if (::statvfs(dir_.c_str(), &space) == 0 &&
      space.f_bavail * space.f_frsize < log_bytes + kRoomSlack) {
    return Error{Code::kFull, 0, "not enough room for the log memory: choose a smaller ring"};
  }
  auto log = shm::Region::create(dir_ + "/log", log_bytes, shm::Fill::kSparse);
  if (!log) return log.error();
  auto control = shm::Region::create(dir_ + "/control", sizeof(TcpControl), shm::Fill::kWhole);
  if (!control) return control.error();
  auto* const c = control.value().as<TcpControl>();
  c->version = kTcpMemoryVersion;
  c->replicas = replicas;
  c->group = group;
  c->log_bytes = log_bytes;
  c->next_key = random_word() >> 2;  // FABRIC-F6, also after this directory was lost
  std::atomic_thread_fence(std::memory_order_release);
  c->magic = kTcpControlMagic;
  control_ = std::move(control).value();
  log_ = std::move(log).value();
  return Done{};
}

Key TcpMemory::new_key(ReplicaId peer) noexcept {
  TcpControl* const c = control();
  // Counted before it is published: a death in between only wastes the key.
  const Key key{c->next_key++};
  std::atomic_thread_fence(std::memory_order_release);
  c->live_key[value(peer)] = consensus::value(key);
  return key;
}

// As in shm, the next version goes into the other copy, so a death at any instruction leaves a
// whole value (FABRIC-F10).
void TcpMemory::set_cell(std::uint8_t cell, const CellValue& v) noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  shm::Cell& c = control()->cells[cell];
  const std::uint64_t version = c.version.load(std::memory_order_relaxed) + 1;
  auto& copy = c.copy[version % 2];
  for (std::size_t i = 0; i < kCellWords; ++i) {
    copy[i].store(v.words[i], std::memory_order_relaxed);
  }
  c.version.store(version, std::memory_order_release);
}

CellValue TcpMemory::cell(std::uint8_t cell) const noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  const shm::Cell& c = control()->cells[cell];
  const auto& copy = c.copy[c.version.load(std::memory_order_acquire) % 2];
  CellValue v;
  for (std::size_t i = 0; i < kCellWords; ++i) v.words[i] = copy[i].load();
  return v;
}

}  // namespace crane::consensus::tcp
