// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/soft_barriers.h"

#include <spdlog/spdlog.h>

namespace crane::node {
namespace {

const char* name(dmt::PointState state) {
  switch (state) {
    case dmt::PointState::kNotFound:
      return "not found";
    case dmt::PointState::kRefused:
      return "refused";
    case dmt::PointState::kFound:
      return "found";
  }
  return "?";
}

}  // namespace

std::vector<SoftBarrierStatus> soft_barriers_of(const Config& config, const dmt::Layout& layout) {
  std::vector<SoftBarrierStatus> all;
  for (std::size_t i = 0; i < config.soft_barriers.size(); ++i) {
    const setup::SoftBarrier& l = config.soft_barriers[i];
    const dmt::SoftBarrierPoint& p = layout.soft_barrier_points[i];
    all.push_back({l.function, l.origin, name(p.state.load(std::memory_order_relaxed)), l.count,
                   l.timeout_us, p.soft_barrier.round, p.soft_barrier.arrivals});
  }
  return all;
}

void warn_of_missing_soft_barriers(const Config& config, const dmt::Layout& layout) {
  for (const SoftBarrierStatus& l : soft_barriers_of(config, layout)) {
    if (l.state == "found") continue;
    // A profile also serves programs that lack the function.
    const auto level = l.origin == "--soft-barrier" ? spdlog::level::warn : spdlog::level::info;
    spdlog::log(level, "soft barrier point {} (of {}): {}", l.function, l.origin,
                l.state == "refused"
                    ? "it cannot be one; see runtime.log"
                    : "no program or library that the server loaded exports such a function");
  }
}

}  // namespace crane::node
