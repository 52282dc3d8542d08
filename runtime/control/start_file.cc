// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/start_file.h"

#include <nlohmann/json.hpp>

#include "dmt/base/process_stat.h"
#include "dmt/base/read_text.h"
#include "runtime/control/schema.h"

namespace crane::control {

nlohmann::json to_json(const Operation& operation, int replica) {
  nlohmann::json json = to_json(operation.progress);
  json["operation"] = operation.name;
  json["replica"] = replica;
  json["step"] = operation.step;
  json["unit"] = name(operation.unit);
  return json;
}

Operation operation_in(const nlohmann::json& json) {
  Operation operation{text_in(json, "operation"), text_in(json, "step"), progress_in(json)};
  if (text_in(json, "unit") == name(Unit::kEntries)) operation.unit = Unit::kEntries;
  return operation;
}

std::string start_text(pid_t node, int replica, const Operation& operation) {
  const nlohmann::json text{{"pid", node},
                            {"operations", nlohmann::json::array({to_json(operation, replica)})}};
  return text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

nlohmann::json operations_of_start(const std::string& replica_home, pid_t& node) {
  const auto json =
      nlohmann::json::parse(text_of_file(replica_home + "/" + kStartFile), nullptr, false);
  const auto maker = static_cast<pid_t>(number_in(json, "pid"));
  const auto stat = maker > 0 ? read_process_stat(maker) : std::nullopt;
  const bool lives = stat && stat->state != 'Z';
  if (!lives || (node > 0 && node != maker)) return nlohmann::json::array();
  node = maker;
  return list_in(json, "operations");
}

}  // namespace crane::control
