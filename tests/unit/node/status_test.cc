// SPDX-License-Identifier: Apache-2.0
// A node's status has the form of the table of answers, also when little is known (ANS-1, ANS-2).
#include "proxy/host/status.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/control/answers.h"
#include "runtime/control/schema.h"

using namespace crane;
using namespace crane::node;

namespace {

std::span<const control::AnswerField> node_table() {
  for (const control::Document& d : control::documents()) {
    if (std::strcmp(d.name, "node") == 0) return d.fields;
  }
  return {};
}

}  // namespace

TEST_CASE("status: unknown values are null, never -1 or 0", "[node]") {
  NodeStatus s;
  s.leader = 255;
  const nlohmann::json json = to_json(s);
  CHECK(control::differs(json, node_table()).empty());
  CHECK(json["version"] == control::kVersion);
  for (const char* key :
       {"server_pid", "server_exit", "leader", "last_election", "detection", "numa_node", "durable",
        "no_quorum", "not_serving", "server_end", "server_refused"}) {
    INFO(key);
    CHECK(json.at(key).is_null());
  }
}

TEST_CASE("status: known values have their number and are in the table", "[node]") {
  NodeStatus s;
  s.role = "leader";
  s.server_pid = 4711;
  s.server_exit = 0;
  s.server_end = "background";
  s.server_refused = "exec of /x is refused: it is static";
  s.now_ns = 5'000'000'000;
  s.log.election.at_ns = 1'000'000'000;
  s.log.detection.period_ns = 300'000;
  s.stalled_thread = {3, 77, 1'000'000'000};
  s.unsliced = {"libx.so+0x10", 2'000'000'000};
  s.log.members.resize(2);
  s.log.members[1].id = ReplicaId{1};
  s.soft_barriers.resize(1);
  s.unhooked.resize(1);
  const nlohmann::json json = to_json(s);
  INFO(control::differs(json, node_table()));
  CHECK(control::differs(json, node_table()).empty());
  CHECK(json["server_pid"] == 4711);
  CHECK(json["server_exit"] == 0);
  CHECK(json["server_end"] == "background");
  CHECK(json["server_refused"] == s.server_refused);
  CHECK(json["leader"] == 0);
  CHECK(json["last_election"]["age_ms"] == 4000);
  CHECK(json["detection"]["period_us"] == 300);
  CHECK(json["standing_still"]["for_ms"] == 4000);
  CHECK(json["unsliced"]["for_ms"] == 2000);
  CHECK(json["peers"].size() == 1);
}
