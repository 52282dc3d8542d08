// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/early_points.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/descriptor.h"
#include "checkpoint/manifest.h"
#include "dmt/base/read_text.h"
#include "dmt/slices.h"
#include "runtime/setup/preflight.h"

namespace crane::node {
namespace {

std::string path_of(const Config& config) {
  return config.replica_dir() + "/" + setup::kEarlyPoints;
}

std::string log_of(const Config& config) {
  return checkpoint::digest_of_log(config.group, config.log_id);
}

}  // namespace

std::vector<EarlyPoint> noted_early_points(const Config& config) {
  std::ifstream file(path_of(config));
  if (!file) return {};
  try {
    const auto json = nlohmann::json::parse(rest_of(file));
    if (json.at("log").get<std::string>() == log_of(config)) return early_points(json.at("points"));
  } catch (const nlohmann::json::exception& e) {
    // The log contains the points, too: the node begins once more.
    spdlog::warn("{}: {}", path_of(config), e.what());
  }
  return {};
}

Outcome note_early_point(const Config& config, const EarlyPoint& point) {
  auto points = noted_early_points(config);
  points.push_back(point);
  const nlohmann::json json{{"log", log_of(config)}, {"points", early_json(points)}};
  return checkpoint::write_file(path_of(config), json.dump());
}

const EarlyPoint* first_missing(const NodeState& state,
                                std::span<const EarlyPoint> noted) noexcept {
  const auto lacks = [&state](const EarlyPoint& point) {
    return point.clock < state.clock &&
           std::none_of(state.early.begin(), state.early.end(),
                        [&point](const EarlyPoint& had) { return is_same(had, point); });
  };
  const auto it = std::find_if(noted.begin(), noted.end(), lacks);
  return it == noted.end() ? nullptr : &*it;
}

void put_early_points(dmt::Layout& layout, const NodeState& state,
                      std::span<const EarlyPoint> noted) noexcept {
  for (const EarlyPoint& had : state.early) {
    dmt::add_early_point(layout, had, had.clock < state.clock);
  }
  for (const EarlyPoint& point : noted) {
    if (!dmt::add_early_point(layout, point, false)) spdlog::warn("too many early tick points");
  }
}

}  // namespace crane::node
