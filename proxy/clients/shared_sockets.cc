// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/shared_sockets.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

namespace crane::proxy {

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
    : table_(std::move(table)),
      holder_(holder),
      right_(table_->memory(), name_of_process(::getpid()), host_processes()) {}

SharedSockets::~SharedSockets() {
  stop_writing();
  if (keeper_ && holder_.holds.load() == 0) keeper_->end();
}

void SharedSockets::replace_keeper() {
  if (keeper_) keeper_->end();
  keeper_.reset();
  auto next = SocketKeeper::start(*table_, holder_);
  if (next.ok()) {
    spdlog::warn("the keeper of the clients' sockets was killed and replaced");
    keeper_.emplace(std::move(next).value());
  } else if (!complained_) {
    spdlog::error(
        "the keeper of the clients' sockets was killed, and another one cannot be started: {}; "
        "until then connections end with this process",
        next.error().message());
  }
  complained_ = !next.ok();
}

std::vector<int> SharedSockets::adopt_sockets() {
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
