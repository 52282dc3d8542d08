// SPDX-License-Identifier: Apache-2.0
#include "proxy/ticks/point_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

namespace crane::ticks {
namespace {

std::optional<TickPoint> point_of(const std::string& line) {
  TickPoint point{};
  std::istringstream words(line);
  words >> std::hex >> point.build >> point.offset >> std::dec >> point.bytes >> point.dead_flags >>
      point.weight_ps;
  if (!words || point.build == 0 || point.weight_ps == 0 || point.dead_flags > 1) return {};
  return point;
}

}  // namespace

std::vector<TickPoint> read_points(const std::string& path, std::string& damaged) {
  std::vector<TickPoint> points;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const auto point = point_of(line)) {
      points.push_back(*point);
    } else {
      damaged = line;
    }
  }
  return points;
}

Outcome write_points(const std::string& path, std::span<const TickPoint> points) {
  const std::string fresh = path + ".new";
  std::ofstream file(fresh, std::ios::trunc);
  for (const TickPoint& p : points) {
    file << fmt::format("{:016x} {:x} {} {} {}\n", p.build, p.offset, p.bytes, p.dead_flags,
                        p.weight_ps);
  }
  file.close();
  if (!file || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return system_error("write the tick points");
  }
  return Done{};
}

}  // namespace crane::ticks
