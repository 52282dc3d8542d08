// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/placement.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <fstream>

namespace crane::node {
namespace {

const std::string kNodes = "/sys/devices/system/node/";

bool bind_to(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return true;
  spdlog::warn("not bound to cpus {}: {}", setup::cpus_text(cpus), std::strerror(errno));
  return false;
}

// Memory of other nodes is used when this node has no more: a slow replica is better than none.
void prefer_memory_of(int node) {
  constexpr std::size_t kBits = CHAR_BIT * sizeof(unsigned long);
  std::array<unsigned long, (setup::kNumaNodeMost + 1 + kBits) / kBits> mask{};
  mask[static_cast<std::size_t>(node) / kBits] |= 1UL << (static_cast<std::size_t>(node) % kBits);
  if (::syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), kBits * mask.size()) != 0) {
    spdlog::warn("memory of NUMA node {} is not preferred: {}", node, std::strerror(errno));
  }
}

std::vector<int> usable() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

bool list_in(const std::string& path, std::vector<int>& list) {
  std::ifstream in(path);
  std::string text;
  return std::getline(in, text) && setup::parse_cpus(text, list);
}

bool has(const std::vector<int>& list, int one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

}  // namespace

Outcome check_placement(const std::string& path, Config& config) {
  const auto wrong = [&](const char* key, int number, const std::string& cause) {
    return setup::failure(
        setup::Status::kGroupFile, "cannot use the group's file", path,
        fmt::format("[[replica]] {} {}: {} {}", config.replica, key, number, cause),
        "name another, or leave it out");
  };
  const std::vector<int> usable_here = usable();
  if (config.numa_node >= 0) {
    std::vector<int> nodes, cpus;
    if (!list_in(kNodes + "online", nodes) || !has(nodes, config.numa_node)) {
      return wrong("numa_node", config.numa_node,
                   "is not a node of this machine, which has " + setup::cpus_text(nodes));
    }
    list_in(kNodes + "node" + std::to_string(config.numa_node) + "/cpulist", cpus);
    std::erase_if(cpus, [&](int cpu) { return !has(usable_here, cpu); });
    if (config.cpus.empty()) config.cpus = cpus;  // none: the node has only memory
  }
  for (const int cpu : config.cpus) {
    if (!has(usable_here, cpu)) {
      return wrong(
          "cpus", cpu,
          "is not a processor that the node may use; it may use " + setup::cpus_text(usable_here));
    }
  }
  const std::vector<int>& may = config.cpus.empty() ? usable_here : config.cpus;
  if (config.cpu >= 0 && !has(may, config.cpu)) {
    return wrong(
        "cpu", config.cpu,
        "is not a processor that the replica may use; it may use " + setup::cpus_text(may));
  }
  return Done{};
}

void place_node(Config& config) {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_BATCH, &none);
  if (config.numa_node >= 0) prefer_memory_of(config.numa_node);
  if (!config.cpus.empty()) bind_to(config.cpus);
  const std::vector<int> usable_here = usable();
  for (const int cpu : usable_here) config.processors |= cpu < 64 ? std::uint64_t{1} << cpu : 0;
  if (usable_here.empty() || usable_here.back() >= 64) config.processors = 0;
}

std::string own_processors() { return setup::cpus_text(usable()); }

NodePlacement::NodePlacement(const Config& config)
    : cpu_(::sched_getaffinity(0, sizeof all_, &all_) == 0 ? config.cpu : -1) {}

NodePlacement::~NodePlacement() { move_to(NodePlace::kRoams); }

void NodePlacement::move_to(NodePlace place) noexcept {
  if (place == place_) return;
  cpu_set_t server{};
  CPU_SET(static_cast<std::size_t>(cpu_), &server);
  const cpu_set_t* set = place == NodePlace::kShares ? &server : &all_;
  if (::sched_setaffinity(0, sizeof *set, set) == 0) place_ = place;
}

ServerPlacement::ServerPlacement(const Config& config) {
  if (config.cpu < 0) return;
  moved_ = ::sched_getaffinity(0, sizeof before_, &before_) == 0 && bind_to({config.cpu});
}

ServerPlacement::~ServerPlacement() {
  if (moved_) ::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace crane::node
