// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/config.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "dmt/base/read_text.h"

namespace crane::node {
namespace {

using Json = nlohmann::json;

Error bad(const char* what) { return {Code::kBadArgument, 0, what}; }

Result<Config> parse(const Json& json) {
  Config c;
  if (const char* wrong = setup::read_fields(json, c); wrong != nullptr) return bad(wrong);
  if (c.replicas == 0 || c.replicas > kReplicasMax) return bad("replicas");
  if (c.replica >= c.replicas) return bad("replica");
  if (c.members > c.replicas) return bad("members");
  if (!c.analysis.empty() && c.analysis_dir.empty()) return bad("analysis_dir");
  if (c.dir.empty() || c.dir[0] != '/') return bad("dir");
  if (c.shm_dir.empty() || c.shm_dir[0] != '/') return bad("shm_dir");
  if (c.program.empty()) return bad("program");
  if (c.libcrane.empty()) return bad("libcrane");
  return c;
}

}  // namespace

std::uint32_t Config::detached_calls() const {
  std::uint32_t calls = 0;
  for (const std::string& name : detach) {
    if (name == "fsync") calls |= dmt::kDetachSync;
    if (name == "computation") calls |= dmt::kDetachComputation;
    if (name == "any-computation") calls |= dmt::kDetachAnyComputation;
  }
  return calls;
}

std::int64_t lag_of(const Config& config) noexcept {
  return config.spins ? 0 : std::int64_t{config.lag_ms} * 1'000'000;
}

Result<Config> parse_config(std::string_view json) {
  try {
    return parse(Json::parse(json));
  } catch (const Json::exception&) {
    return bad("not the JSON of a node's configuration");
  }
}

Result<Config> read_config(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::kNotFound, errno, "the configuration file"};
  const std::string text = rest_of(in);
  if (in.bad()) return Error{Code::kSystem, errno, "read the configuration file"};
  return parse_config(text);
}

}  // namespace crane::node
