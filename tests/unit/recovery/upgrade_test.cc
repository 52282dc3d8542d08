// SPDX-License-Identifier: Apache-2.0
// An upgrade of the server's command line: when it is kept, and when it is rolled back (UPGRADE-2).
#include "proxy/replica/recovery/upgrade.h"

#include <catch2/catch.hpp>
#include <string>

using namespace crane;
using namespace crane::replica;

namespace {

const Upgrade::Server kBefore{{"/bin/old", "-x"}}, kNext{{"/bin/new"}, 1};

Upgrade on_trial() {
  Upgrade u;
  u.asked(Index{7}, kBefore, kNext, 30);
  const Upgrade::Server* server = u.begun();
  REQUIRE(server != nullptr);
  CHECK(*server == kNext);
  CHECK(u.on_trial());
  return u;
}

}  // namespace

TEST_CASE("upgrade: a server stays when its kKeep is admitted", "[upgrade]") {
  Upgrade u = on_trial();
  CHECK_FALSE(u.admitted(Index{9}));
  u.keep_committed(Index{9});
  CHECK(u.keeps());
  CHECK_FALSE(u.admitted(Index{8}));
  CHECK(u.on_trial());  // until its server has admitted it
  CHECK(u.admitted(Index{9}));
  CHECK(u.state() == Upgrade::State::kKept);
  CHECK_FALSE(u.undecided());
  CHECK(u.begun() == nullptr);  // a later restart changes nothing
}

TEST_CASE("upgrade: a server that ended before its kKeep is rolled back", "[upgrade]") {
  Upgrade u = on_trial();
  u.keep_committed(Index{9});  // the leader's server had not ended when it proposed that
  u.failed("it ended");
  CHECK_FALSE(u.admitted(Index{9}));
  CHECK(u.rolls_back());
  u.failed("it ended again");
  CHECK(u.why() == "it ended");
  const Upgrade::Server* server = u.begun();
  REQUIRE(server != nullptr);
  CHECK(*server == kBefore);
  CHECK(u.state() == Upgrade::State::kRolledBack);
  CHECK_FALSE(u.open());
}

TEST_CASE("upgrade: a server that took no turn is dead until another one begins", "[upgrade]") {
  Upgrade u = on_trial();
  u.failed("the leader's ended");
  CHECK_FALSE(u.dead());
  u.failed("a library is missing", true);
  CHECK(u.dead());
  (void)u.begun();
  CHECK_FALSE(u.dead());
}

TEST_CASE("upgrade: a kKeep for another server has no effect, and one upgrade follows the other",
          "[upgrade]") {
  Upgrade u;
  u.keep_committed(Index{3});
  CHECK_FALSE(u.keeps());
  CHECK(u.begun() == nullptr);
  CHECK_FALSE(u.undecided());
  u = on_trial();
  CHECK(u.open());
  u.keep_committed(Index{9});
  CHECK(u.admitted(Index{9}));
  u.asked(Index{12}, kNext, kBefore, 5);
  CHECK(u.entry() == Index{12});
  CHECK_FALSE(u.keeps());
  CHECK(std::string(name(u.state())) == "asked");
}
