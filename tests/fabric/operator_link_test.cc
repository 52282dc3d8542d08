// SPDX-License-Identifier: Apache-2.0
// GOAL    Both fabrics with links hand out an operator's link, and no link that only looks like it.
// METHOD  The tcp fabric, and the bootstrap links of the verbs fabric, on the loopback interface;
//         dialers with each combination of name and plane.
// CHECKS  LINK-S1, LINK-S3; a replica number and an operator's plane do not go together.
#include <catch2/catch.hpp>

#include "consensus/fabric/verbs_links.h"
#include "tests/fabric/harness.h"
#include "tests/fabric/tcp_group.h"

namespace crane::test {

using consensus::kOperator;
using consensus::kOperatorPlane;
using consensus::kVisitPlane;
using consensus::LinkContext;
using consensus::LinkName;
using consensus::SecureLink;
using State = SecureLink::State;

namespace {

constexpr ReplicaId kNode{1};

// One of the two fabrics, as replica 1.
struct Node {
  std::vector<std::pair<ReplicaId, std::unique_ptr<SecureLink>>> handed;
  TcpGroup group;
  std::unique_ptr<consensus::TcpFabric> tcp;
  std::unique_ptr<consensus::verbs::Links> verbs;

  explicit Node(bool is_tcp) {
    const auto take = [this](ReplicaId from, std::unique_ptr<SecureLink> link) {
      handed.emplace_back(from, std::move(link));
    };
    if (is_tcp) {
      auto options = group.options(1, 3);
      options.take_visitor = take;
      auto opened = consensus::TcpFabric::open(options);
      REQUIRE(opened.ok());
      tcp = std::move(opened).value();
      return;
    }
    consensus::verbs::LinksOptions options;
    options.self = kNode;
    options.endpoints = {group.endpoints().begin(), group.endpoints().begin() + 3};
    options.secret = test_secret();
    options.take_visitor = take;
    auto opened = consensus::verbs::Links::open(options);
    REQUIRE(opened.ok());
    verbs = std::move(opened).value();
  }
  void look() {
    if (tcp != nullptr) {
      (void)drain(*tcp);
    } else {
      consensus::verbs::Bootstrap::Event event;
      while (verbs->next(event)) {
      }
    }
  }
  // Whether the dialler's link was handed out.
  bool takes(const LinkName& name, std::uint8_t fill) {
    const std::size_t before = handed.size();
    auto context = LinkContext::create(test_secret(fill), name.from, 3);
    REQUIRE(context.ok());
    const auto& at = group.endpoints()[value(kNode)];
    auto link = SecureLink::dial(*context.value(), name,
                                 consensus::resolve(at.address, at.port).value(), 1000);
    REQUIRE(link.ok());
    REQUIRE(until([&] {
      look();
      if (link.value()->progress() == State::kOpen) link.value()->fill(1);
      return link.value()->state() == State::kFailed || handed.size() > before;
    }));
    if (handed.size() > before) CHECK(handed.back().first == name.from);
    return handed.size() > before;
  }
};

}  // namespace

TEST_CASE("an operator's link is handed out by the tcp and the verbs fabric, a stranger's is not",
          "[links][LINK-S3]") {
  const bool is_tcp = GENERATE(true, false);
  CAPTURE(is_tcp);
  Node node(is_tcp);
  constexpr std::uint8_t kOurs = 0x5a, kOther = 0x11;
  CHECK(node.takes({kOperator, kNode, kOperatorPlane}, kOurs));
  CHECK(node.takes({ReplicaId{2}, kNode, kVisitPlane}, kOurs));
  CHECK_FALSE(node.takes({kOperator, kNode, kOperatorPlane}, kOther));
  CHECK_FALSE(node.takes({kOperator, ReplicaId{0}, kOperatorPlane}, kOurs));  // meant for another
  for (const std::uint8_t plane :
       {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{16}, std::uint8_t{17}, kVisitPlane}) {
    CHECK_FALSE(node.takes({kOperator, kNode, plane}, kOurs));
  }
  CHECK_FALSE(node.takes({ReplicaId{2}, kNode, kOperatorPlane}, kOurs));
  CHECK(node.takes({kOperator, kNode, kOperatorPlane}, kOurs));
}

}  // namespace crane::test
