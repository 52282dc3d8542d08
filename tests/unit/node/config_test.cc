// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/config.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/setup/node_fields.h"

using namespace crane;
using namespace crane::node;

namespace {
const char* const kWhole = R"({
  "group": "web", "replica": 1, "replicas": 3, "dir": "/run/crane/web", "shm_dir": "/dev/shm/w",
  "program": "/bin/true", "args": ["-x"], "env": ["A=1"], "dirs": ["/run/a"],
  "mode": "parallel", "quantum": 7, "n_clock": 50, "w_timeout_us": 20, "admission": "classic",
  "record": "/tmp/r", "spins": true, "detach": ["fsync"],
  "line_ups": [{"point": "f:8:5000", "origin": "--soft-barrier"}],
  "container": false,
  "binds": [{"source": "/a", "target": "/b"}, {"source": "/c", "target": "/d", "read_only": true}],
  "libcrane": "/l.so",
  "lag_ms": 40, "perturb": 5, "cpu": 1, "log_id": 18446744073709551615,
  "secret": "00000000000000010000000000000002000000000000000300000000000000ff"})";
}  // namespace

TEST_CASE("a complete configuration is read", "[config]") {
  const auto parsed = parse_config(kWhole);
  REQUIRE(parsed.ok());
  const Config& c = parsed.value();
  REQUIRE(c.group == "web");
  REQUIRE(c.replica == 1);
  REQUIRE(c.replicas == 3);
  REQUIRE(c.replica_dir() == "/run/crane/web/r1");
  REQUIRE(c.env == std::vector<std::string>{"A=1"});
  REQUIRE(c.mode == dmt::Mode::kParallel);
  REQUIRE(c.admission == dmt::Admission::kClassic);
  REQUIRE(c.n_clock == 50);
  REQUIRE(c.w_timeout_us == 20);
  REQUIRE(c.lag_ms == 40);
  REQUIRE(lag_of(c) == 0);  // it spins
  Config calm = c;
  calm.spins = false;
  REQUIRE(lag_of(calm) == 40'000'000);
  REQUIRE(c.spins);
  REQUIRE(c.detached_calls() == dmt::kDetachSync);
  REQUIRE(c.soft_barriers.size() == 1);
  REQUIRE(c.soft_barriers[0].function == "f");
  REQUIRE(c.soft_barriers[0].count == 8);
  REQUIRE(c.soft_barriers[0].timeout_us == 5000);
  REQUIRE(c.soft_barriers[0].origin == "--soft-barrier");
  REQUIRE(c.binds.size() == 2);
  REQUIRE(c.binds[0] == crane::setup::Bind{"/a", "/b", false});
  REQUIRE(c.binds[1] == crane::setup::Bind{"/c", "/d", true});
  REQUIRE_FALSE(c.container);
  REQUIRE(c.log_id == UINT64_MAX);
  REQUIRE(c.secret[0] == 1);
  REQUIRE(c.secret[3] == 255);
}

TEST_CASE("each option of the table reaches the configuration", "[config]") {
  const Config initial;
  REQUIRE(initial.checkpoint_every_s == 0);  // a node without options
  REQUIRE(initial.checkpoint_log_mb == 0);
  setup::NodeOptions written;
  const auto change = [](auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) value = !value;
    if constexpr (std::is_same_v<Value, std::uint32_t>) value += 1;
    if constexpr (std::is_same_v<Value, dmt::Admission>) value = dmt::Admission::kArrival;
    if constexpr (std::is_same_v<Value, std::string>) value = value.empty() ? "/another" : "disk";
  };
  for (const auto& row : setup::option_rows()) {
    std::visit([&](auto field) { change(written.*field); }, row.field);
  }
  auto json = nlohmann::json::parse(kWhole);
  setup::write_options(written, json);
  const auto parsed = parse_config(json.dump());
  REQUIRE(parsed.ok());
  for (const auto& row : setup::option_rows()) {
    CAPTURE(row.key);
    const auto same = [&](auto field) { return parsed.value().*field == written.*field; };
    CHECK(std::visit(same, row.field));
  }
}

TEST_CASE("a wrong configuration names the field", "[config]") {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kWhole;
    text.replace(text.find(from), from.size(), to);
    const auto parsed = parse_config(text);
    return parsed.ok() ? std::string("accepted") : std::string(parsed.error().what);
  };
  REQUIRE(with("\"replica\": 1", "\"replica\": 3") == "replica");
  REQUIRE(with("\"replicas\": 3", "\"replicas\": 0") == "replicas");
  REQUIRE(with("\"replicas\": 3", "\"replicas\": 3, \"members\": 4") == "members");
  REQUIRE(with("\"lag_ms\": 40", "\"lag_ms\": 2001") == "lag_ms");
  REQUIRE(with("parallel", "sideways") == "mode");
  REQUIRE(with("classic", "never") == "admission");
  REQUIRE(with("f:8:5000", "f:0:5000") == "line_ups");
  REQUIRE(with("00000000000000ff", "0000") == "secret");
  REQUIRE(with("\"/bin/true\"", "\"\"") == "program");
  REQUIRE(with("\"web\"", "7") == "not the JSON of a node's configuration");
  REQUIRE(parse_config("{").error().code == Code::kBadArgument);
  REQUIRE(read_config("/nonexistent/x.json").error().code == Code::kNotFound);
}
