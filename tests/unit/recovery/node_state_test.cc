// SPDX-License-Identifier: Apache-2.0
// A node's state in a checkpoint: it is written and read, and a damaged one is refused.
#include "proxy/host/recovery/node_state.h"

#include <catch2/catch.hpp>
#include <tuple>

#include <nlohmann/json.hpp>

using namespace crane;
using namespace crane::node;

namespace {

NodeState some_state() {
  NodeState s;
  s.at = {make_view(7, ReplicaId{2}), Index{4711}};
  s.position = 123'456'789'012;
  s.facts = {std::byte{0}, std::byte{255}};
  s.stamp_ns = 99;
  s.clock = 1'000'001;
  s.hash = 0xffff'ffff'ffff'fff0;
  s.last_pid = 321;
  s.log_bytes = 78;
  s.first_start = Index{2};
  s.passed = 77;
  s.verified = 4000;
  s.entries[3] = 12;
  s.early = {{{0xffff'ffff'ffff'fffe, 0x1234, 1000, 5, 1}, 1'000'000}};
  s.outputs.bytes = 5;
  s.outputs.hash.closed_sum = 0x8000'0000'0000'0001;
  s.outputs.hash.open = {{3, 1, 2, 3, 4}, {9, 0xffff'ffff'ffff'ffff, 0, 1, 1535}};
  return s;
}

}  // namespace

TEST_CASE("node state: what is written is read", "[checkpoint]") {
  const NodeState s = some_state();
  const auto text = to_json(s).dump();
  const auto read = node_state(nlohmann::json::parse(text));
  REQUIRE(read.ok());
  REQUIRE(to_json(read.value()).dump() == text);
  const NodeState& r = read.value();  // a wrong value that is written twice gives the same text
  CHECK(r.at == s.at);
  CHECK(r.position == s.position);
  CHECK(r.facts == s.facts);
  CHECK(r.stamp_ns == s.stamp_ns);
  CHECK(r.clock == s.clock);
  CHECK(r.hash == s.hash);
  CHECK(r.last_pid == s.last_pid);
  CHECK(r.first_start == s.first_start);
  CHECK(r.passed == s.passed);
  CHECK(r.verified == s.verified);
  CHECK(r.log_bytes == s.log_bytes);
  CHECK(r.entries == s.entries);
  CHECK(r.outputs.bytes == s.outputs.bytes);
  CHECK(r.outputs.hash.closed_sum == s.outputs.hash.closed_sum);
  REQUIRE(r.outputs.hash.open.size() == s.outputs.hash.open.size());
  for (std::size_t i = 0; i < s.outputs.hash.open.size(); ++i) {
    const proxy::OutputStream &a = r.outputs.hash.open[i], &b = s.outputs.hash.open[i];
    CHECK(std::tie(a.conn, a.chain, a.buckets, a.crc, a.filled) ==
          std::tie(b.conn, b.chain, b.buckets, b.crc, b.filled));
  }
}

TEST_CASE("node state: a state with fewer types of entries is read", "[checkpoint]") {
  nlohmann::json json = to_json(some_state());
  json["entries"].erase(json["entries"].size() - 1);
  const auto read = node_state(json);
  REQUIRE(read.ok());
  CHECK(read.value().entries[3] == 12);
}

TEST_CASE("node state: anything else is refused", "[checkpoint]") {
  nlohmann::json json = to_json(some_state());
  SECTION("a field is missing") { json.erase("clock"); }
  SECTION("a field is of another kind") { json["entries"] = "none"; }
  SECTION("a connection has more than a bucket") { json["outputs"]["open"][0][4] = 1536; }
  SECTION("it is no object") { json = nlohmann::json::array(); }
  const auto read = node_state(json);
  REQUIRE_FALSE(read.ok());
  REQUIRE(read.error().code == Code::kDamaged);
}

TEST_CASE("output hash: it continues from a checkpoint's state", "[checkpoint][HASH-1]") {
  const std::vector<std::byte> bytes(4000, std::byte{7});
  proxy::OutputHash one, other;
  one.bytes(ConnId{1}, bytes);
  one.bytes(ConnId{2}, std::span(bytes).first(10));
  one.bytes(ConnId{3}, bytes);
  one.closed(ConnId{3});
  other.restore(one.state());
  REQUIRE(other.digest() == one.digest());
  REQUIRE_FALSE(other.marks_whole());
  for (proxy::OutputHash* h : {&one, &other}) {
    h->bytes(ConnId{1}, std::span(bytes).first(77));
    h->closed(ConnId{2});
  }
  REQUIRE(other.digest() == one.digest());
  other.bytes(ConnId{1}, std::span(bytes).first(1));
  REQUIRE(other.digest() != one.digest());
}
