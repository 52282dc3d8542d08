// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/placement.h"

#include <spdlog/spdlog.h>

#include <cstddef>

namespace crane::node {
namespace {

bool bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return true;
  spdlog::warn("not bound to cpu {}", cpu);
  return false;
}

}  // namespace

void place_node(const Config& config) {
  if (config.cpu >= 0 && !config.node_roams) bind_to(config.cpu);
}

ServerPlacement::ServerPlacement(const Config& config) {
  if (config.cpu < 0 || !config.node_roams) return;
  moved_ = ::sched_getaffinity(0, sizeof before_, &before_) == 0 && bind_to(config.cpu);
}

ServerPlacement::~ServerPlacement() {
  if (moved_) ::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace crane::node
