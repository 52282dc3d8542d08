// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica runs on the processors, and prefers the memory, that its host's file names. It
//         is refused if the machine lacks them.
// METHOD  On this machine's first usable processor and NUMA node, in a child, which is then bound.
// CHECKS  The kernel's report on the child.
#include "proxy/host/placement.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/node/in_child.h"

using namespace crane::node;
using crane::setup::Status;
using crane::setup::status_of;

namespace {

int first_processor() {
  std::vector<int> cpus;
  REQUIRE(crane::setup::parse_cpus(own_processors(), cpus));
  return cpus.front();
}

bool has_nodes() { return std::filesystem::exists("/sys/devices/system/node/online"); }

template <typename Check>
bool holds_when_placed(Config config, Check check) {
  return holds_in_child([&] {
    place_node(config);
    return check();
  });
}

void check_refused(Config config, const std::string& what) {
  const auto p = check_placement("g.toml", config);
  CAPTURE((p.ok() ? "" : p.error().text));
  CHECK(status_of(p) == Status::kGroupFile);
  for (const std::string& word : {std::string("g.toml"), what, std::string("; name another")}) {
    CHECK(p.error().text.find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("placement: the replica is bound to its processors", "[placement]") {
  Config config;
  config.cpus = {first_processor()};
  REQUIRE(check_placement("g.toml", config).ok());
  CHECK(holds_when_placed(config,
                          [&] { return own_processors() == std::to_string(config.cpus.front()); }));
}

TEST_CASE("placement: a NUMA node determines processors and memory", "[placement]") {
  if (!has_nodes()) return;  // a kernel without NUMA
  Config config;
  config.numa_node = 0;
  REQUIRE(check_placement("g.toml", config).ok());
  CHECK_FALSE(config.cpus.empty());
  CHECK(holds_when_placed(config, [&] {
    int mode = -1;
    unsigned long nodes[32] = {};
    return ::syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof nodes, nullptr, 0) == 0 &&
           mode == MPOL_PREFERRED && nodes[0] == 1 &&
           own_processors() == crane::setup::cpus_text(config.cpus);
  }));
}

TEST_CASE("placement: processors and nodes that the machine lacks are refused", "[placement]") {
  Config config;
  config.cpus = {first_processor(), crane::setup::kProcessorMost};
  check_refused(config, "cpus: 1023 is not a processor that the node may use");
  config.cpus = {};
  config.cpu = crane::setup::kProcessorMost;
  check_refused(config, "cpu: 1023 is not a processor that the replica may use");
  config.cpu = -1;
  config.numa_node = crane::setup::kNumaNodeMost;
  check_refused(config, "numa_node: 1023 is not a node of this machine");
}

TEST_CASE("placement: a node moves to its server's processor, and back", "[placement]") {
  std::vector<int> mine;
  REQUIRE(crane::setup::parse_cpus(own_processors(), mine));
  if (mine.size() < 2) return;  // one processor leaves no choice
  Config config;
  config.cpu = mine.back();
  const std::string all = own_processors(), server = std::to_string(config.cpu);
  CHECK(holds_when_placed(config, [&] {
    NodePlacement placement(config);
    if (!placement.has_choice()) return false;
    for (int i = 0; i < 3; ++i) {
      placement.move_to(NodePlace::kShares);
      if (own_processors() != server) return false;
      placement.move_to(NodePlace::kRoams);
      if (own_processors() != all) return false;
    }
    return true;
  }));
  CHECK(holds_when_placed(config, [&] {
    NodePlacement(config).move_to(NodePlace::kShares);
    return own_processors() == all;  // in the end it roams
  }));
}
