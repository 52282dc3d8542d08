// SPDX-License-Identifier: Apache-2.0
// A service sends the messages of sd_notify(3), and removes the variables from the environment.
#include "runtime/setup/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>

using crane::setup::ServiceManager;

namespace {

// The end of systemd: an abstract socket, whose address has a zero byte instead of the @.
struct Manager {
  Manager() {
    const std::string name = "@crane-test-" + std::to_string(getpid());
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path + 1, name.data() + 1, name.size() - 1);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    close(fd);
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
  std::string received() const {
    char text[256];
    const ssize_t n = recv(fd, text, sizeof text, 0);
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "";
  }
  int fd;
};

}  // namespace

TEST_CASE("a service reports that it is ready, its status, and that it is alive",
          "[service_manager]") {
  const Manager manager;
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  ServiceManager service;
  CHECK(getenv("NOTIFY_SOCKET") == nullptr);
  CHECK(getenv("WATCHDOG_USEC") == nullptr);
  service.ready("follows replica 0");
  CHECK(manager.received() == "READY=1");
  CHECK(manager.received() == "STATUS=follows replica 0");
  service.ready("follows replica 0");
  CHECK(manager.received().empty());
  service.status("leads");
  CHECK(manager.received() == "STATUS=leads");
  CHECK(service.watchdog_ns() == 15'000'000'000);
  service.alive();
  CHECK(manager.received() == "WATCHDOG=1");
  service.stopping();
  CHECK(manager.received() == "STOPPING=1");

  service.put_back();
  CHECK(ServiceManager().watchdog_ns() == service.watchdog_ns());
}

TEST_CASE("the watchdog of another process is ignored", "[service_manager]") {
  const Manager manager;
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  CHECK(ServiceManager().watchdog_ns() == 0);
}

TEST_CASE("without a service manager no message is sent", "[service_manager]") {
  unsetenv("NOTIFY_SOCKET");
  setenv("WATCHDOG_USEC", "30000000", 1);
  ServiceManager service;
  service.ready("leads");
  service.alive();
  CHECK(service.watchdog_ns() == 0);
  service.put_back();
  CHECK(getenv("NOTIFY_SOCKET") == nullptr);
}
