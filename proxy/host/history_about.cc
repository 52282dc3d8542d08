// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/history_about.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "runtime/setup/program.h"

namespace crane::node {
namespace {

using Json = nlohmann::json;

// parse_config() wants them; whoever replays sets them.
constexpr const char* kSetLater = "/";

Json binds_of(const Config& c) {
  Json binds = Json::array();
  for (const setup::Bind& bind : c.binds) {
    binds.push_back(
        {{"source", bind.source}, {"target", bind.target}, {"read_only", bind.read_only}});
  }
  return binds;
}

Json soft_barriers_of(const Config& c) {
  Json all = Json::array();
  for (const auto& l : c.soft_barriers) {
    all.push_back({{"point", setup::text_of(l)}, {"origin", l.origin}});
  }
  return all;
}

const char* name_of(dmt::Admission admission) noexcept {
  return admission == dmt::Admission::kClassic   ? "classic"
         : admission == dmt::Admission::kArrival ? "arrival"
                                                 : "grant";
}

Json detach_of(const Config& c) {
  Json names = Json::array();
  for (const char* name : {"fsync", "computation", "any-computation"}) {
    if ((c.detached_calls & detached_calls_of({name})) != 0) names.push_back(name);
  }
  return names;
}

// `perturb` is physical and left out; so is what only leaders and clients know.
Json config_of(const Config& c) {
  return {{"group", c.group},
          {"replica", c.replica},
          {"replicas", c.replicas},
          {"dir", kSetLater},
          {"shm_dir", kSetLater},
          {"libcrane", kSetLater},
          {"program", c.program},
          {"args", c.args},
          {"env", c.env},
          {"dirs", c.dirs},
          {"mode", c.mode == dmt::Mode::kParallel ? "parallel" : "serial"},
          {"admission", name_of(c.admission)},
          {"quantum", c.quantum},
          {"n_clock", c.n_clock},
          {"w_timeout_us", c.w_timeout_us},
          {"strict", c.strict},
          {"spins", c.spins},
          {"detach", detach_of(c)},
          {"line_ups", soft_barriers_of(c)},
          {"container", c.container},
          {"binds", binds_of(c)},
          {"base", c.base},
          {"cpu", c.cpu},
          {"send_buffer", c.send_buffer},
          {"working_directory", c.working_directory}};
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
  const Error damaged{Code::kDamaged, 0, "what it says of the server cannot be understood"};
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
