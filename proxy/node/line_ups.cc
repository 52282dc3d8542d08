// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/line_ups.h"

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

std::vector<LineUpStatus> line_ups_of(const Config& config, const dmt::Layout& layout) {
  std::vector<LineUpStatus> all;
  for (std::size_t i = 0; i < config.line_ups.size(); ++i) {
    const setup::LineUp& l = config.line_ups[i];
    const dmt::LineUpPoint& p = layout.line_up_points[i];
    all.push_back({l.function, l.origin, name(p.state.load(std::memory_order_relaxed)), l.count,
                   l.timeout_us, p.line_up.round, p.line_up.arrivals});
  }
  return all;
}

void warn_of_missing_line_ups(const Config& config, const dmt::Layout& layout) {
  for (const LineUpStatus& l : line_ups_of(config, layout)) {
    if (l.state == "found") continue;
    // A profile's is for those who have what it names.
    const auto level = l.origin == "--line-up" ? spdlog::level::warn : spdlog::level::info;
    spdlog::log(level, "line-up point {} (of {}): {}", l.function, l.origin,
                l.state == "refused"
                    ? "it cannot be one; runtime.log says why"
                    : "no program or library that the server loaded exports such a function");
  }
}

}  // namespace crane::node
