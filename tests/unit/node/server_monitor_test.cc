// SPDX-License-Identifier: Apache-2.0
// GOAL    A server that ends at once is a server that has ended, and no bug of the node.
// METHOD  /bin/true in a container, whose supervisor looks for it only when it is gone.
// CHECKS  What the node hears: its start, its check-in, its end.
#include "proxy/host/server_monitor.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/fault_points.h"
#include "dmt/processes.h"
#include "tests/unit/containers.h"
#include "tests/unit/node/check_in_client.h"

using namespace crane;
using namespace crane::node;

namespace {

// In the supervisor of the server: until the server has ended.
void wait_for_end(const char* place) {
  siginfo_t ended{};
  if (std::strcmp(place, checkpoint::kLaunched) != 0) return;
  (void)::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
}

struct World {
  std::string directory = "/tmp/crane-monitor-XXXXXX";
  Config config;
  event_base* base = event_base_new();
  std::unique_ptr<Segment> segment;
  std::unique_ptr<ServerMonitor> monitor;
  std::vector<std::string> heard;
  bool checks_in = false;

  World() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    config.dir = directory;
    config.shm_dir = directory + "/shm";
    config.group = "monitor-" + std::to_string(::getpid());
    config.container = true;
    config.program = "/bin/true";
    config.working_directory = "/";
    config.libcrane = directory + "/libcrane.so";
    std::ofstream(config.libcrane) << "a library that nothing loads";
    std::filesystem::create_directories(config.replica_dir());
    segment = std::move(Segment::create(config).value());
    monitor = std::make_unique<ServerMonitor>(base, config, *segment, callbacks());
    fault_hook = wait_for_end;
  }
  ~World() {
    fault_hook = nullptr;
    monitor.reset();
    segment.reset();
    event_base_free(base);
    std::filesystem::remove_all(directory);
  }
  ServerMonitorCallbacks callbacks() {
    ServerMonitorCallbacks c;
    // The last moment: of what came behind `started` the end is read first.
    c.on_event = [this] {
      if (!checks_in || heard.empty()) return;
      checks_in = false;
      check_in();
    };
    c.drain = [] {};
    c.on_started = [this](pid_t pid) { heard.push_back("started " + std::to_string(pid)); };
    c.on_ended = [this](int status) { heard.push_back("ended " + std::to_string(status)); };
    c.on_killed = [this](std::uint32_t, std::uint32_t) { heard.push_back("killed"); };
    c.on_failed = [this](ExitStatus, const std::string& why) { heard.push_back(why); };
    return c;
  }
  void check_in() {
    const int fd = test::connect_to(segment->checkin_fd());
    test::send_check_in(fd, dmt::kMainProcess);
    ::close(fd);
  }
  void run() {
    REQUIRE(monitor->start().ok());
    while (heard.size() < 2) event_base_loop(base, EVLOOP_ONCE);
  }
};

}  // namespace

TEST_CASE("the end of a server that ended before it was seen is told", "[server_monitor]") {
  if (!test::containers_work("server_monitor")) return;
  World world;
  world.run();
  CHECK(world.heard[0] == "started -1");
  CHECK(world.heard[1].rfind(
            "/bin/true exited with status 0 before it loaded libcrane.so (static or setuid?)", 0) ==
        0);
}

TEST_CASE("a server that ended as soon as it had checked in has checked in", "[server_monitor]") {
  if (!test::containers_work("server_monitor")) return;
  World world;
  world.checks_in = true;
  world.run();
  CHECK(world.heard == std::vector<std::string>{"started -1", "ended 0"});
}
