// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/config.h"

#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "runtime/setup/option_json.h"

namespace crane::node {
namespace {

using Json = nlohmann::json;

Error bad(const char* what) { return {Code::kBadArgument, 0, what}; }

// Reads `name` if it is there and not null.
template <typename T>
void get(const Json& json, const char* name, T& value) {
  const auto found = json.find(name);
  if (found != json.end() && !found->is_null()) value = found->get<T>();
}

// ["A=1", ...] or {"A": "1", ...}
void get_environment(const Json& json, std::vector<std::string>& env) {
  const auto found = json.find("env");
  if (found == json.end() || found->is_null()) return;
  if (found->is_array()) {
    env = found->get<std::vector<std::string>>();
    return;
  }
  for (const auto& [name, value] : found->items())
    env.push_back(name + "=" + value.get<std::string>());
}

// "path", "source:target", "path:ro", ["source", "target"] or
// {"source": .., "target": .., "read_only": ..}
void get_binds(const Json& json, std::vector<setup::Bind>& binds) {
  const auto found = json.find("binds");
  if (found == json.end() || found->is_null()) return;
  for (const Json& bind : *found) {
    if (bind.is_string()) {
      binds.push_back(setup::parse_bind(bind.get<std::string>()));
    } else if (bind.is_array()) {
      binds.push_back({bind.at(0).get<std::string>(), bind.at(1).get<std::string>()});
    } else {
      binds.push_back({bind.at("source").get<std::string>(), bind.at("target").get<std::string>(),
                       bind.value("read_only", false)});
    }
  }
}

// [{"point": "function:8:5000", "origin": "--soft-barrier"}, ...]; false: one is none.
bool get_soft_barriers(const Json& json, std::vector<setup::SoftBarrier>& soft_barriers) {
  const auto found = json.find("line_ups");
  if (found == json.end() || found->is_null()) return true;
  for (const Json& one : *found) {
    setup::SoftBarrier l;
    if (!setup::parse_soft_barrier(one.at("point").get<std::string>(), l)) return false;
    l.origin = one.value("origin", "");
    soft_barriers.push_back(std::move(l));
  }
  return soft_barriers.size() <= dmt::kSoftBarrierPointsMax;
}

bool get_secret(const Json& json, std::array<std::uint64_t, 4>& secret) {
  std::string hex;
  get(json, "secret", hex);
  if (hex.empty()) return true;
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return false;
  }
  for (std::size_t i = 0; i < 4; ++i) secret[i] = std::stoull(hex.substr(i * 16, 16), nullptr, 16);
  return true;
}

// What the replica begins with.
void get_begin(const Json& json, Config& c) {
  get(json, "restore", c.restore);
  get(json, "checkpoint", c.checkpoint);
  get(json, "may_begin", c.may_begin);
  get(json, "skip_checkpoints", c.skip_checkpoints);
  get(json, "forget", c.forget);
}

void get_analysis(const Json& json, Config& c) {
  get(json, "analysis_replica", c.analysis_replica);
  get(json, "analysis", c.analysis);
  get(json, "analysis_dir", c.analysis_dir);
  get(json, "analysis_spool_mb", c.analysis_spool_mb);
}

Result<Config> parse(const Json& json) {
  Config c;
  get(json, "group", c.group);
  get(json, "replica", c.replica);
  get(json, "replicas", c.replicas);
  get(json, "dir", c.dir);
  get(json, "shm_dir", c.shm_dir);
  get(json, "program", c.program);
  get(json, "args", c.args);
  get_environment(json, c.env);
  get(json, "dirs", c.dirs);
  std::vector<std::string> detach;
  get(json, "detach", detach);
  c.detached_calls = detached_calls_of(detach);
  get_binds(json, c.binds);
  get(json, "http_listen", c.http_listen);
  get(json, "http_pages", c.http_pages);
  get(json, "base", c.base);
  get(json, "keeps_files", c.keeps_files);
  get(json, "leaves_files", c.leaves_files);
  get(json, "libcrane", c.libcrane);
  get(json, "perturb", c.perturb);
  get(json, "trace", c.trace);
  get(json, "test_only_flip", c.test_only_flip);
  get(json, "cpu", c.cpu);
  get(json, "server_cpus", c.server_cpus);
  get(json, "log_id", c.log_id);
  get(json, "send_buffer", c.send_buffer);
  get(json, "working_directory", c.working_directory);
  get_begin(json, c);
  get(json, "members", c.members);
  get(json, "ring_bytes", c.ring_bytes);
  get_analysis(json, c);
  std::string mode = "serial";
  get(json, "mode", mode);
  if (const char* wrong = setup::read_options(json, c); wrong != nullptr) return bad(wrong);
  if (!mode_of(mode, c.mode)) return bad("mode");
  if (!get_soft_barriers(json, c.soft_barriers)) return bad("line_ups");
  if (!get_secret(json, c.secret)) return bad("secret");
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

bool mode_of(const std::string& name, dmt::Mode& mode) {
  mode = name == "parallel" ? dmt::Mode::kParallel : dmt::Mode::kSerial;
  return name == "parallel" || name == "serial";
}

std::uint32_t detached_calls_of(const std::vector<std::string>& names) {
  std::uint32_t calls = 0;
  for (const auto& name : names) {
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
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return parse_config(text);
}

}  // namespace crane::node
