// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/connection_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace crane::proxy {
namespace {

constexpr unsigned kPidBits = 22;  // the kernel's limit (PID_MAX_LIMIT)
using Memory = ConnectionTableLayout;

bool allocate_pages(int fd) noexcept {
  return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, sizeof(Memory)) == 0 || errno == EOPNOTSUPP;
}

}  // namespace

ProcessName name_of_process(pid_t pid) noexcept {
  const std::uint64_t start = consensus::process_start(pid);
  if (start == 0) return ProcessName{0};
  return ProcessName{start << kPidBits | static_cast<std::uint64_t>(pid)};
}

pid_t pid_of(ProcessName name) noexcept {
  return static_cast<pid_t>(static_cast<std::uint64_t>(name) & ((1U << kPidBits) - 1));
}

consensus::ProcessStat process_stat(ProcessName name) noexcept {
  if (name == ProcessName{0}) return {};
  const consensus::ProcessStat found = consensus::process_stat(pid_of(name));
  return found.start == static_cast<std::uint64_t>(name) >> kPidBits ? found
                                                                     : consensus::ProcessStat{};
}

bool is_alive(ProcessName name) noexcept {
  const consensus::ProcessStat found = process_stat(name);
  return found.start != 0 && found.state != 'Z' && found.state != 'X';
}

Result<std::unique_ptr<ConnectionTable>> ConnectionTable::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("the connection table's file");
  // A new file is filled with zeros, which are an unused table.  All its pages are allocated at the
  // start (ROOM-1).
  void* at = MAP_FAILED;
  struct stat file {};
  if (::fstat(fd, &file) == 0 && ::ftruncate(fd, sizeof(Memory)) == 0 && allocate_pages(fd)) {
    at = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const Error why = system_error("the connection table's memory");
  ::close(fd);
  if (at == MAP_FAILED) return why;
  std::unique_ptr<ConnectionTable> table(
      new ConnectionTable(static_cast<Memory*>(at), path, file.st_dev, file.st_ino));
  std::uint64_t found = 0;
  if (!table->memory_->magic.compare_exchange_strong(found, Memory::kMagic) &&
      found != Memory::kMagic) {
    return Error{Code::kWrongVersion, 0, "the connection table was made by another build"};
  }
  return table;
}

ConnectionTable::~ConnectionTable() { ::munmap(memory_, sizeof(Memory)); }

bool ConnectionTable::is_there() const noexcept {
  struct stat now {};
  return ::stat(path_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == number_;
}

SocketHolder* ConnectionTable::claim_holder() noexcept {
  const ProcessName own = name_of_process(::getpid());
  for (SocketHolder& holder : memory_->holders) {
    ProcessName owner = holder.node.load();
    if (is_alive(owner) || is_alive(holder.keeper.load())) continue;
    if (!holder.node.compare_exchange_strong(owner, own)) continue;
    holder.holds.store(0);
    holder.descriptors.store(0);
    holder.keeper.store(ProcessName{0});
    return &holder;
  }
  return nullptr;
}

void ConnectionTable::add_port(std::uint16_t port) noexcept {
  for (std::atomic<std::uint32_t>& place : memory_->ports) {
    std::uint32_t found = 0;
    if (place.compare_exchange_strong(found, port) || found == port) return;
  }
}

bool ConnectionTable::has_port(std::uint16_t port) const noexcept {
  for (const std::atomic<std::uint32_t>& place : memory_->ports) {
    const std::uint32_t found = place.load(std::memory_order_relaxed);
    if (found == port || found == 0) return found == port && port != 0;
  }
  return false;
}

}  // namespace crane::proxy
