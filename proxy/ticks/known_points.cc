// SPDX-License-Identifier: Apache-2.0
#include "proxy/ticks/known_points.h"

#include <algorithm>
#include <string_view>

namespace crane::ticks {
namespace {

struct Known {
  std::string_view program;
  TickPoint point;
};
constexpr Known kKnown[] = {
#define TICK_POINT(program, build, offset, bytes, dead_flags, weight_ps) \
  {program, {build, offset, weight_ps, bytes, dead_flags}},
#include "proxy/ticks/known_points.def"
#undef TICK_POINT
};

bool names(const std::string& word, std::string_view program) {
  return std::string_view(word).substr(word.rfind('/') + 1).starts_with(program);
}

}  // namespace

std::vector<TickPoint> known_points(std::span<const std::string> command) {
  std::vector<TickPoint> points;
  for (const Known& known : kKnown) {
    const auto named = [&known](const std::string& word) { return names(word, known.program); };
    if (std::any_of(command.begin(), command.end(), named)) points.push_back(known.point);
  }
  return points;
}

}  // namespace crane::ticks
