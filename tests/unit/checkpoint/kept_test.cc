// SPDX-License-Identifier: Apache-2.0
// UNIT    checkpoint/kept.h
// GOAL    A replica can begin at the checkpoint that is reported as the newest.
// CHECKS  another group's log, damage and distrust; also distrust that comes and goes between two
//         calls.
#include "checkpoint/kept.h"

#include "tests/unit/checkpoint/image_harness.h"

using namespace crane;
using namespace crane::test;

namespace {

struct World {
  Scratch scratch;
  std::mt19937_64 random{Catch::rngSeed()};
  checkpoint::Newest newest;

  std::string home(int replica) const { return scratch.path() + "/r" + std::to_string(replica); }
  std::string add(int replica, std::uint64_t index) {
    fs::create_directories(home(replica));
    Checkpoints place = checkpoints_in(home(replica));
    return publish_one(place, 1, index, random);
  }
  // Records that a replica that began there differed at that entry.
  void differs(int replica, const std::string& name, std::uint64_t at) {
    REQUIRE(checkpoints_in(home(replica)).note_difference(name, Index{at}).ok());
  }
  std::uint64_t look(const std::string& digest = digest_of_log("web", 4711)) {
    const Listed* found = newest.look(scratch.path(), digest);
    return found == nullptr ? 0 : value(found->manifest.at.index);
  }
};

}  // namespace

TEST_CASE_METHOD(World, "kept: the newest of this log is found at any replica", "[kept]") {
  CHECK(look() == 0);
  add(0, 50);
  add(2, 90);
  CHECK(look() == 90);
  CHECK(look(digest_of_log("web", 4712)) == 0);
  const std::string damaged = add(1, 95);
  spill(home(1) + "/checkpoints/" + damaged + "/manifest.json", "?");
  CHECK(look() == 90);
}

TEST_CASE_METHOD(World, "kept: a distrusted one is skipped, unless there is no other",
                 "[kept][START-3]") {
  const std::string newer = add(2, 90);
  CHECK(look() == 90);
  differs(2, newer, 97);
  differs(2, newer, 97);
  CHECK(look() == 90);  // the only one
  const std::string older = add(0, 50);
  CHECK(look() == 50);  // even though the newer one was read before it was distrusted
  differs(0, older, 60);
  differs(0, older, 60);
  CHECK(look() == 90);
  differs(2, newer, 99);  // at another entry: the server's nondeterminism caused it
  CHECK(look() == 90);
  CHECK_FALSE(newest.look(scratch.path(), digest_of_log("web", 4711))->distrusted);
}
