// SPDX-License-Identifier: Apache-2.0
// GOAL    What a replica may do follows from its state.
// METHOD  All combinations of the flags, compared with the rules in words.
// CHECKS  LIFE-1; which replica serves, proposes, hands over, reports.
#include "proxy/replica/replica.h"

#include <catch2/catch.hpp>

using crane::replica::Life;

namespace {

constexpr bool Life::*kStates[] = {
    &Life::member,        &Life::stopping,      &Life::acceptor_only,
    &Life::begun,         &Life::ended,         &Life::server_handed_over,
    &Life::reached_start, &Life::leads,         &Life::keeps_leading,
    &Life::started,       &Life::takes_clients, &Life::hands_over};

template <typename Each>
void for_each_life(const Each& each) {
  for (unsigned bits = 0; bits < 1U << std::size(kStates); ++bits) {
    Life life;
    for (std::size_t i = 0; i < std::size(kStates); ++i) life.*kStates[i] = (bits >> i & 1) != 0;
    each(life);
  }
}

}  // namespace

TEST_CASE("a server is started once, and only where one may run", "[life][LIFE-1]") {
  unsigned may = 0;
  for_each_life([&may](const Life& life) {
    const bool out = life.begun || life.ended || life.acceptor_only || life.server_handed_over;
    REQUIRE(life.may_start_server() == (life.reached_start && !out));
    may += life.may_start_server() ? 1 : 0;
  });
  CHECK(may == 1U << (std::size(kStates) - 5));
}

TEST_CASE("a replica without a running server proposes and serves nothing", "[life]") {
  for_each_life([](const Life& life) {
    if (!life.stopping && !life.ended && !life.acceptor_only) return;
    REQUIRE_FALSE(life.is_active());
    REQUIRE_FALSE(life.may_propose());
    REQUIRE_FALSE(life.serves());
  });
  Life life;
  life.leads = life.keeps_leading = life.started = true;
  CHECK(life.may_propose());
  CHECK_FALSE(life.serves());
  life.takes_clients = true;
  CHECK(life.serves());
  CHECK_FALSE(life.holds_output());
  life.keeps_leading = false;  // leadership is lost, unnoticed
  CHECK(life.holds_output());
}

TEST_CASE("leadership is given away by a leader that has it, also by one without a server",
          "[life][VOTES-1]") {
  Life life;
  CHECK_FALSE(life.can_hand_over_lead());
  life.leads = life.keeps_leading = true;
  CHECK(life.can_hand_over_lead());
  life.acceptor_only = true;
  CHECK(life.can_hand_over_lead());
  life.acceptor_only = false;
  life.ended = true;  // the others learn of the servers' end as followers
  CHECK_FALSE(life.can_hand_over_lead());
  life.ended = false;
  for (auto state : {&Life::stopping, &Life::hands_over}) {
    Life other = life;
    other.*state = true;
    CHECK_FALSE(other.can_hand_over_lead());
  }
  life.member = false;
  CHECK_FALSE(life.can_hand_over_lead());
}

TEST_CASE("a follower reports how far its server is, if it has one", "[life]") {
  Life life;
  CHECK(life.reports_progress());
  CHECK(life.watches_quorum());
  life.acceptor_only = life.stopping = true;
  CHECK_FALSE(life.reports_progress());
  CHECK_FALSE(life.watches_quorum());
}
