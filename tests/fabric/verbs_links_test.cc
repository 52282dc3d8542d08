// SPDX-License-Identifier: Apache-2.0
// GOAL    the parts of the RDMA fabric that need no device: its bootstrap connections deliver whole
//         frames, in order and only from members, and a machine without devices gives an error.
// METHOD  replicas' links on the loopback interface, polled in turn; a stranger with another
//         secret.
// CHECKS  up, frames, down and up again after a reset and after a restart; the stranger gets
//         nothing.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>

#include "consensus/fabric/verbs_device.h"
#include "consensus/fabric/verbs_links.h"
#include "tests/fabric/harness.h"
#include "tests/fabric/tcp_group.h"

namespace crane::test {

using consensus::verbs::Bootstrap;
using consensus::verbs::Links;
using consensus::verbs::LinksOptions;
using Event = Bootstrap::Event;

namespace {

struct End {
  std::unique_ptr<Links> links;
  std::size_t ups = 0;
  std::size_t downs = 0;
  std::vector<std::string> frames;

  void look() {
    Event e;
    while (links && links->next(e)) {
      if (e.kind == Event::Kind::kUp) ++ups;
      if (e.kind == Event::Kind::kDown) ++downs;
      if (e.kind == Event::Kind::kFrame) frames.push_back(text_of(e.data));
    }
  }
};

struct Two {
  ReservedPorts ports{2};
  End end[2];

  void open(std::uint8_t id, std::uint8_t secret) {
    LinksOptions o;
    o.self = ReplicaId{id};
    o.endpoints = ports.endpoints();
    o.secret = test_secret(secret);
    auto opened = Links::open(o);
    REQUIRE(opened.ok());
    end[id].links = std::move(opened).value();
  }
  bool until_both(const std::function<bool()>& condition) {
    return until([&] {
      end[0].look();
      end[1].look();
      return condition();
    });
  }
  bool send(std::uint8_t from, const std::string& text) {
    return end[from].links->send(from == 0 ? kOne : kZero, bytes_of(text));
  }
  static constexpr ReplicaId kZero{0};
  static constexpr ReplicaId kOne{1};
};

}  // namespace

TEST_CASE("verbs links: frames arrive complete and in order, whichever side starts first",
          "[links]") {
  const bool small_first = GENERATE(true, false);
  Two t;
  t.open(small_first ? 0 : 1, 1);
  t.open(small_first ? 1 : 0, 1);
  REQUIRE(t.until_both([&] { return t.end[0].ups == 1 && t.end[1].ups == 1; }));
  std::vector<std::string> wanted;
  for (int i = 0; i < 200; ++i) {
    wanted.push_back(std::string(static_cast<std::size_t>(i * 7 % 4000), 'x') + std::to_string(i));
    REQUIRE(t.send(0, wanted.back()));
    REQUIRE(t.send(1, wanted.back()));
  }
  REQUIRE(
      t.until_both([&] { return t.end[0].frames.size() == 200 && t.end[1].frames.size() == 200; }));
  CHECK(t.end[0].frames == wanted);
  CHECK(t.end[1].frames == wanted);
  CHECK_FALSE(t.send(0, std::string(5000, 'x')));  // larger than any frame
  CHECK(t.end[0].downs == 0);
}

TEST_CASE("verbs links: a reset and a restart are reported, and the connection returns",
          "[links]") {
  Two t;
  t.open(0, 1);
  t.open(1, 1);
  REQUIRE(t.until_both([&] { return t.end[0].ups == 1 && t.end[1].ups == 1; }));
  t.end[0].links->reset(ReplicaId{1});
  REQUIRE(t.until_both([&] { return t.end[0].ups == 2 && t.end[1].ups == 2; }));
  CHECK(t.end[0].downs == 1);
  CHECK(t.end[1].downs == 1);
  for (const auto id :
       {std::uint8_t{0}, std::uint8_t{1}}) {  // the dialling and the accepting replica
    const std::size_t downs = t.end[1 - id].downs;
    const std::size_t ups = t.end[1 - id].ups;
    t.end[id].links.reset();
    REQUIRE(t.until_both([&] { return t.end[1 - id].downs == downs + 1; }));
    t.open(id, 1);
    REQUIRE(t.until_both([&] { return t.end[1 - id].ups == ups + 1; }));
  }
}

TEST_CASE("verbs links: a stranger without the secret is not heard", "[links]") {
  Two t;
  t.open(0, 1);
  t.open(1, 2);
  CHECK_FALSE(until(
      [&] {
        t.end[0].look();
        t.end[1].look();
        return t.end[0].ups + t.end[1].ups > 0;
      },
      500));
  CHECK_FALSE(t.send(1, "let me in"));
  t.end[1].links.reset();
  t.open(1, 1);  // the real member can still connect
  REQUIRE(t.until_both([&] { return t.end[0].ups == 1 && t.end[1].ups == 1; }));
}

TEST_CASE("verbs: a missing device is an error that names it", "[links]") {
  const auto device = consensus::verbs::Device::open("no-such-device", "");
  REQUIRE_FALSE(device.ok());
  CHECK(device.error().code == Code::kNotFound);
}

}  // namespace crane::test
