// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/history_about.h"

#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "runtime/setup/program.h"

namespace crane::node {
namespace {

using Json = nlohmann::json;

// parse_config() requires these fields; the replay sets them.
constexpr const char* kSetLater = "/";

Json config_of(const Config& c) {
  Json json{{"dir", kSetLater}, {"shm_dir", kSetLater}, {"libcrane", kSetLater}};
  setup::write_fields(c, setup::Fields::kKept, json);
  json.erase("record");  // a replay records nothing
  return json;
}

}  // namespace

std::string history_about(const Config& c) {
  return Json{
      {"layout_version", dmt::kLayoutVersion},
      {"library_digest", setup::file_digest(c.libcrane)},
      {"program_digest", setup::file_digest(c.program)},
      {"log_digest", c.replays ? c.log_digest : checkpoint::digest_of_log(c.group, c.log_id)},
      {"config", config_of(c)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<HistoryAbout> parse_history_about(std::string_view text) {
  const Error damaged{Code::kDamaged, 0, "its description of the server cannot be parsed"};
  try {
    const Json json = Json::parse(text);
    HistoryAbout about;
    about.layout_version = json.at("layout_version").get<std::uint32_t>();
    about.library_digest = json.at("library_digest").get<std::uint64_t>();
    about.program_digest = json.at("program_digest").get<std::uint64_t>();
    about.log_digest = json.at("log_digest").get<std::string>();
    auto config = parse_config(json.at("config").dump());
    if (!config.ok()) return damaged;
    about.config = std::move(config).value();
    return about;
  } catch (const Json::exception&) {
    return damaged;
  }
}

}  // namespace crane::node
