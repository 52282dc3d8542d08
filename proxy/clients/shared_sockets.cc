// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/shared_sockets.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "consensus/fabric/process.h"
#include "proxy/clients/grants.h"

namespace crane::proxy {
namespace {

constexpr std::int64_t kLookNs = 200'000;  // whether an earlier writer has stopped

bool is_stopped(ProcessName name) noexcept {
  const char state = consensus::process_stat(pid_of(name)).state;
  return state == 'T' || state == 't';
}

}  // namespace

Result<std::unique_ptr<SharedSockets>> SharedSockets::open(const std::string& path) {
  auto table = ConnectionTable::open(path);
  if (!table.ok()) return table.error();
  SocketHolder* holder = table.value()->claim_holder();
  if (holder == nullptr) {
    return Error{Code::kFull, 0, "too many processes share the clients' sockets"};
  }
  std::unique_ptr<SharedSockets> shared(new SharedSockets(std::move(table).value(), *holder));
  auto keeper = SocketKeeper::start(*shared->table_, *holder);
  if (!keeper.ok()) return keeper.error();
  shared->keeper_.emplace(std::move(keeper).value());
  return shared;
}

SharedSockets::SharedSockets(std::unique_ptr<ConnectionTable> table, SocketHolder& holder)
    : table_(std::move(table)), holder_(holder), own_(name_of_process(::getpid())) {}

SharedSockets::~SharedSockets() {
  stop_writing();
  if (keeper_ && holder_.holds.load() == 0) keeper_->end();
}

SharedSockets::Right SharedSockets::become_writer(std::int64_t now_ns) {
  std::atomic<ProcessName>& writer = table_->memory().writer;
  ProcessName before = writer.load();
  if (before == own_) return Right::kOurs;
  bool free = before == ProcessName{0} || !is_alive(before);
  if (!free) {
    if (waits_since_ns_ == 0) waits_since_ns_ = now_ns;
    const std::int64_t waited_ns = now_ns - waits_since_ns_;
    if (!killed_ && (waited_ns >= kStopsNs || is_stopped(before))) end_writer(before, now_ns);
    if (waited_ns < kDiesNs) {
      due_ns_ = now_ns + kLookNs;
      return Right::kWaits;
    }
    spdlog::error("process {} has led this group and does not end: its clients are reset",
                  pid_of(before));
    return Right::kCannot;
  }
  free = writer.compare_exchange_strong(before, own_);
  due_ns_ = free ? kNever : now_ns;
  waits_since_ns_ = free ? 0 : waits_since_ns_;
  killed_ = false;
  return free ? Right::kOurs : Right::kWaits;
}

void SharedSockets::end_writer(ProcessName writer, std::int64_t now_ns) {
  const pid_t pid = pid_of(writer);
  const int pidfd = consensus::open_pidfd(pid);
  killed_ = true;
  if (pidfd < 0) return;
  // The number is the writer's as long as the descriptor is of a process that is still it.
  if (is_alive(writer)) {
    spdlog::warn(
        "process {} has led this group and still holds the clients' sockets after {} ms: "
        "it is killed",
        pid, (now_ns - waits_since_ns_) / 1'000'000);
    if (::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) != 0) {
      spdlog::error("cannot kill process {}: {}", pid, system_error("kill").message());
    }
  }
  ::close(pidfd);
}

void SharedSockets::stop_writing() noexcept {
  ProcessName own = own_;
  (void)table_->memory().writer.compare_exchange_strong(own, ProcessName{0});
  waits_since_ns_ = 0;
  killed_ = false;
  due_ns_ = kNever;
}

std::vector<int> SharedSockets::collect() {
  std::vector<int> all;
  holder_.holds.store(1);
  held_ = true;
  for (SocketHolder& other : table_->memory().holders) {
    if (&other == &holder_ || other.holds.load() == 0) continue;
    const ProcessName keeper = other.keeper.load();
    if (is_alive(keeper)) {
      const auto taken = take_sockets(*table_, other);
      if (taken.ok()) {
        all.insert(all.end(), taken.value().begin(), taken.value().end());
        for (const int fd : taken.value()) opened(fd);
      } else {
        spdlog::error("cannot take the clients' sockets of process {}: {}", pid_of(keeper),
                      taken.error().message());
      }
    }
    sockets_taken(other);
  }
  return all;
}

void SharedSockets::opened(int fd) noexcept {
  const auto end = static_cast<std::uint32_t>(fd) + 1;
  if (end > holder_.descriptors.load(std::memory_order_relaxed)) holder_.descriptors.store(end);
}

bool SharedSockets::released() const noexcept { return held_ && holder_.holds.load() == 0; }

void SharedSockets::none_left() noexcept {
  held_ = false;
  holder_.holds.store(0);
}

}  // namespace crane::proxy
