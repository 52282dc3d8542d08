// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/known_group.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace crane::launcher {

using Json = nlohmann::json;

std::uint64_t number_of_log(const std::string& log_id) {
  return std::strtoull(log_id.c_str(), nullptr, 10);
}

std::string text_of(const KnownGroup& group) {
  const Json json{{"version", 1},
                  {"name", group.name},
                  {"log_id", group.log_id},
                  {"secret", group.secret},
                  {"durability", group.durability},
                  {"replicas", group.replicas},
                  {"places", group.places},
                  {"data", group.data},
                  {"program", group.program},
                  {"environment", group.environment},
                  {"working_directory", group.working_directory},
                  {"machines", group.machines}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<KnownGroup> parse_known_group(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  try {
    KnownGroup k;
    json.at("name").get_to(k.name);
    json.at("log_id").get_to(k.log_id);
    json.at("secret").get_to(k.secret);
    json.at("durability").get_to(k.durability);
    json.at("replicas").get_to(k.replicas);
    json.at("places").get_to(k.places);
    json.at("data").get_to(k.data);
    json.at("program").get_to(k.program);
    json.at("environment").get_to(k.environment);
    json.at("working_directory").get_to(k.working_directory);
    json.at("machines").get_to(k.machines);
    const bool number = !k.log_id.empty() && k.log_id.size() <= 20 && k.log_id != "0" &&
                        k.log_id.find_first_not_of("0123456789") == std::string::npos;
    if (number && k.machines.size() == k.data.size()) return k;
  } catch (const Json::exception&) {
  }
  return failure(Code::kDamaged, "read group.json", "the file is damaged");
}

}  // namespace crane::launcher
