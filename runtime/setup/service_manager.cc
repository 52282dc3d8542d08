// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace crane::setup {
namespace {

constexpr char kSocket[] = "NOTIFY_SOCKET", kWatchdog[] = "WATCHDOG_USEC", kPid[] = "WATCHDOG_PID";

std::string take(const char* name) {
  const char* const value = std::getenv(name);
  const std::string taken = value != nullptr ? value : "";
  unsetenv(name);
  return taken;
}

}  // namespace

ServiceManager::ServiceManager() : socket_(take(kSocket)) {
  const std::string pid = take(kPid), watchdog = take(kWatchdog);
  if (pid.empty() || pid == std::to_string(getpid())) watchdog_us_ = watchdog;
}

void ServiceManager::put_back() const {
  if (socket_.empty()) return;
  setenv(kSocket, socket_.c_str(), 1);
  if (watchdog_us_.empty()) return;
  setenv(kWatchdog, watchdog_us_.c_str(), 1);
  setenv(kPid, std::to_string(getpid()).c_str(), 1);
}

void ServiceManager::ready(const std::string& status) {
  if (!std::exchange(ready_, true)) notify("READY=1");
  this->status(status);
}

void ServiceManager::status(const std::string& status) {
  if (status == status_) return;
  status_ = status;
  notify("STATUS=" + status);
}

void ServiceManager::stopping() const { notify("STOPPING=1"); }

std::int64_t ServiceManager::watchdog_ns() const noexcept {
  constexpr std::int64_t kNsPerUs = 1000;
  return socket_.empty() ? 0 : std::strtoll(watchdog_us_.c_str(), nullptr, 10) * kNsPerUs / 2;
}

void ServiceManager::alive() const { notify("WATCHDOG=1"); }

// Drops a message that cannot be sent, because the group does not depend on its service manager.
void ServiceManager::notify(const std::string& text) const {
  sockaddr_un to{};
  if (socket_.empty() || socket_.size() >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  (void)sendto(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&to), size);
  close(fd);
}

ServiceManager& service_manager() {
  static ServiceManager own;
  return own;
}

}  // namespace crane::setup
