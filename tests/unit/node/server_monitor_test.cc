// SPDX-License-Identifier: Apache-2.0
// GOAL    A server that ends at once is reported as ended, not as a failure of the node.
// METHOD  /bin/true in a container; its supervisor looks for it only when it is gone.
// CHECKS  The reports to the node: start, check-in, end.
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

// Runs in the server's supervisor: waits until the server has ended.
void wait_for_end(const char* place) {
  siginfo_t ended{};
  if (std::strcmp(place, checkpoint::kLaunched) != 0) return;
  (void)::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
}

struct World : ServerMonitor::Owner {
  std::string directory = "/tmp/crane-monitor-XXXXXX";
  Config config;
  event_base* base = event_base_new();
  std::unique_ptr<Segment> segment;
  std::unique_ptr<ServerMonitor> monitor;
  std::vector<std::string> received;
  bool checks_in = false;
  unsigned woken = 0;

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
    monitor = std::make_unique<ServerMonitor>(base, config, *segment, *this);
    fault_hook = wait_for_end;
  }
  virtual ~World() {
    fault_hook = nullptr;
    monitor.reset();
    segment.reset();
    event_base_free(base);
    std::filesystem::remove_all(directory);
  }
  // The last moment: the server has started, and its end is read before anything else.
  void woke() override {
    if (++woken == 2 && checks_in) check_in();
  }
  void drain_server() override {}
  void server_started(pid_t pid) override { received.push_back("started " + std::to_string(pid)); }
  void server_ended(int status) override { received.push_back("ended " + std::to_string(status)); }
  void process_killed(std::uint32_t, std::uint32_t) override { received.emplace_back("killed"); }
  void server_failed(ExitStatus, const std::string& why) override { received.push_back(why); }
  void dump_prepared() override {}
  void dump_ended(const std::string&, const std::string&) override {}
  void check_in() {
    const int fd = test::connect_to(segment->checkin_fd());
    test::send_check_in(fd, dmt::kMainProcess);
    ::close(fd);
  }
  void run() {
    REQUIRE(monitor->start().ok());
    while (received.size() < (checks_in ? 2 : 1)) event_base_loop(base, EVLOOP_ONCE);
  }
};

}  // namespace

TEST_CASE("a server that ended before it was seen, and never checked in, has not started",
          "[server_monitor]") {
  if (!test::containers_work("server_monitor")) return;
  World world;
  world.run();
  CHECK(world.received[0].starts_with(
      "/bin/true exited with status 0 before it loaded libcrane.so (static or setuid?)"));
}

TEST_CASE("a server that ended right after its check-in has checked in", "[server_monitor]") {
  if (!test::containers_work("server_monitor")) return;
  World world;
  world.checks_in = true;
  world.run();
  CHECK(world.received == std::vector<std::string>{"started -1", "ended 0"});
}
