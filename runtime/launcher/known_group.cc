// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/known_group.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace crane::launcher {

using Json = nlohmann::json;

// to_json() and from_json(); reading ignores other fields, and throws if one of these is missing.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KnownGroup, name, log_id, secret, durability, replicas, places,
                                   data, program, environment, working_directory, machines)

std::uint64_t number_of_log(const std::string& log_id) {
  return std::strtoull(log_id.c_str(), nullptr, 10);
}

std::string text_of(const KnownGroup& group) {
  Json json = group;
  json["version"] = 1;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<KnownGroup> parse_known_group(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  try {
    auto k = json.get<KnownGroup>();
    const bool number = !k.log_id.empty() && k.log_id.size() <= 20 && k.log_id != "0" &&
                        k.log_id.find_first_not_of("0123456789") == std::string::npos;
    if (number && k.machines.size() == k.data.size()) return k;
  } catch (const Json::exception&) {
  }
  return failure(Code::kDamaged, "read group.json", "the file is damaged");
}

}  // namespace crane::launcher
