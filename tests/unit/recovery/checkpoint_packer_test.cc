// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica can begin at a checkpoint that a replica took, and relies only on those that
//         were compared with the others'.
// METHOD  Checkpoints without processes in a directory of the test; a real packing process.
// CHECKS  PACK-1, PACK-2, START-1, START-2; the state for a new server, as JSON.
#include "proxy/host/recovery/checkpoint_packer.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "proxy/host/recovery/starting_point.h"

using namespace crane;
using namespace crane::node;

namespace {

struct World : CheckpointPacker::Owner {
  event_base* base = event_base_new();
  std::string directory = "/tmp/crane-packer-XXXXXX";
  Config config;
  Agreed agreed{};
  std::unique_ptr<CheckpointPacker> packer;
  std::vector<Index> made;
  std::string why_not = "not asked";
  std::size_t pad = 0;  // bytes of another file

  World() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    config.dir = directory;
    config.shm_dir = directory + "/shm";
    config.log_id = 42;
    config.durability = "disk";
    agreed.fill(7);
    std::filesystem::create_directories(config.replica_dir());
    renew();
  }
  virtual ~World() {
    packer.reset();
    CHECK(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    event_base_free(base);
    std::filesystem::remove_all(directory);
  }
  void renew() { packer = std::make_unique<CheckpointPacker>(base, config, agreed, *this); }
  void woke() override {}
  void packed(checkpoint::Tier, Index at, const std::string& why) override {
    why_not = why;
    if (why.empty()) made.push_back(at);
  }
  static CheckpointContents contents(std::uint64_t at) {
    CheckpointContents c;
    c.tier = checkpoint::Tier::kRestart;
    c.state.at = {View{256}, Index{at}};
    c.state.clock = at * 10;
    c.files = nlohmann::json::object();
    dmt::CarriedState carried;
    carried.admitted = c.state.at;
    carried.clock = c.state.clock;
    carried.seed[3] = 99;
    c.carried = to_json(carried);
    return c;
  }
  void make(CheckpointContents c) {
    const Index at = c.state.at.index;
    REQUIRE(packer->begin(at).ok());
    CHECK_FALSE(packer->idle());
    std::filesystem::create_directories(packer->staging_upper());
    std::ofstream(packer->staging_upper() + "/data") << value(at);
    if (pad > 0) std::ofstream(packer->staging_upper() + "/pad") << std::string(pad, 'x');
    why_not = "under way";
    REQUIRE(packer->pack(std::move(c)).ok());
    double before = 0;
    while (why_not == "under way") {
      event_base_loop(base, EVLOOP_ONCE);
      if (!packer->packs()) continue;
      const control::Progress now = packer->operation().progress;
      if (now.of == 0) continue;
      const double part = static_cast<double>(now.done) / static_cast<double>(now.of);
      CHECK(part >= before);  // the same bar, packed or verified
      CHECK(part <= 1);
      before = part;
    }
    REQUIRE(why_not.empty());
    CHECK(packer->idle());
  }
  void make(std::uint64_t at) { make(contents(at)); }
};

}  // namespace

TEST_CASE_METHOD(World, "a replica begins at the newest checkpoint of its log",
                 "[packer][START-1]") {
  make(5);
  make(9);
  CHECK(made == std::vector{Index{5}, Index{9}});
  config.restore = true;
  StartingPoint start(config, agreed, true);
  REQUIRE(start.find().ok());
  CHECK(start.at_checkpoint());
  CHECK_FALSE(start.restores_processes());
  CHECK(start.state().at.index == Index{9});
  CHECK(start.carried().seed[3] == 99);
  CHECK(start.log_position()->facts.empty());
  CHECK(std::string(start.recovered_by()) == "restart");
  std::string data;
  std::ifstream(start.upper() + "/data") >> data;
  CHECK(data == "9");
}

TEST_CASE_METHOD(World, "the progress of a checkpoint goes one way", "[packer]") {
  pad = 64 << 20;
  make(5);  // CHECKs it
}

TEST_CASE_METHOD(World, "a checkpoint of another log is not used", "[packer][START-1]") {
  make(5);
  config.log_id = 43;
  config.restore = true;
  StartingPoint start(config, agreed, true);
  const auto found = start.find();
  REQUIRE_FALSE(found.ok());
  CHECK(exit_status_of(found.error()) == ExitStatus::kNoCheckpoint);
  config.may_begin = true;
  StartingPoint again(config, agreed, true);
  CHECK(again.find().ok());
  CHECK(again.runs_all_again());
  CHECK(std::string(again.recovered_by()) == "replay");
}

TEST_CASE_METHOD(
    World, "a checkpoint is not used if its new server would not continue where the old one ended",
    "[packer][START-1]") {
  make(5);
  CheckpointContents torn = contents(9);
  torn.state.clock = 1;
  make(std::move(torn));
  StartingPoint start(config, agreed, true);
  config.restore = true;
  REQUIRE(start.find().ok());
  CHECK(start.state().at.index == Index{5});
}

TEST_CASE_METHOD(World, "a server of another configuration does not recover", "[packer][START-2]") {
  make(5);
  config.restore = true;
  agreed[1] = 8;
  StartingPoint start(config, agreed, true);
  const auto found = start.find();
  REQUIRE_FALSE(found.ok());
  CHECK(exit_status_of(found.error()) == ExitStatus::kDisagrees);
  CHECK(found.error().text.find("the server's command line") != std::string::npos);
  StartingPoint replay(config, agreed, false);
  CHECK(replay.find().ok());
}

TEST_CASE_METHOD(World, "another version of the schedule begins where the group was handed over",
                 "[packer][START-2]") {
  CheckpointContents handed_over = contents(5);
  handed_over.state.handed_over = true;
  make(std::move(handed_over));
  config.restore = true;
  agreed[kAgreedSchedule] = 8;
  StartingPoint start(config, agreed, true);
  REQUIRE(start.find().ok());
  CHECK(start.state().handed_over);
  agreed[kAgreedSchedule + 1] = 8;  // but not with another version of checkpoints
  StartingPoint other(config, agreed, true);
  CHECK_FALSE(other.find().ok());
  agreed.fill(7);
  make(9);
  agreed[kAgreedSchedule] = 8;
  StartingPoint later(config, agreed, true);
  const auto found = later.find();
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().text.find("the schedule version") != std::string::npos);
}

TEST_CASE_METHOD(World, "a checkpoint that was compared with the others is relied on, once",
                 "[packer][PACK-2]") {
  make(5);
  make(9);
  CHECK_FALSE(packer->take_relied(Index{4}));
  CHECK(packer->take_relied(Index{8}) == Index{5});
  CHECK_FALSE(packer->take_relied(Index{8}));
  renew();  // the next process of this node
  packer->find_own();
  CHECK(packer->take_relied(Index{100}) == Index{9});
}

TEST_CASE_METHOD(World, "a checkpoint that may be wrong is removed, a verified one stays",
                 "[packer]") {
  make(5);
  make(9);
  packer->distrust(5);
  const auto left = checkpoints_to_try(config);
  REQUIRE(left.size() == 1);
  CHECK(left[0].listed.manifest.at.index == Index{5});
}

TEST_CASE_METHOD(World, "a checkpoint after which a replica differs each time is left out",
                 "[packer][START-3]") {
  make(5);
  make(9);
  config.restore = true;
  const auto begins_at = [this] {
    StartingPoint start(config, agreed, true);
    REQUIRE(start.find().ok());
    if (start.at_checkpoint()) start.differed(Index{start.state().at.index});
    return start.state().at.index;
  };
  CHECK(begins_at() == Index{9});
  CHECK(begins_at() == Index{9});
  CHECK(begins_at() == Index{5});
  CHECK(begins_at() == Index{5});
  SECTION("the log's beginning is next") {
    config.may_begin = true;
    CHECK(begins_at() == Index{0});
  }
  SECTION("and if that is gone, the newest") { CHECK(begins_at() == Index{9}); }
  make(12);
  CHECK(begins_at() == Index{12});
}

TEST_CASE_METHOD(World, "a checkpoint at which the server fails to start twice is left out",
                 "[packer][START-3]") {
  make(5);
  make(9);
  config.restore = true;
  for (const std::uint64_t at : {9U, 9U, 5U}) {
    StartingPoint start(config, agreed, true);
    REQUIRE(start.find().ok());
    CHECK(start.state().at.index == Index{at});
    start.server_failed();
  }
  // A replay changes no mark.
  StartingPoint replay(config, agreed, false);
  REQUIRE(replay.find().ok());
  replay.server_failed();
  StartingPoint start(config, agreed, true);
  REQUIRE(start.find().ok());
  CHECK(start.state().at.index == Index{5});
}

TEST_CASE_METHOD(
    World, "if the log reaches back to nothing else, a replica begins at a distrusted checkpoint",
    "[packer][START-3]") {
  config.durability = "memory";
  config.restore = config.may_begin = true;
  // One process: where it begins, and whether the log turns out not to reach back there.
  const auto begins_at = [this](bool gone) {
    StartingPoint start(config, agreed, true);
    REQUIRE(start.find().ok());
    if (gone) start.note_log_lost();
    return start.state().at.index;
  };
  const auto distrust = [this](const std::string& name) {
    checkpoint::Checkpoints place({config.checkpoints_dir(), 1, {}});
    for (int i = 0; i < 2; ++i) REQUIRE(place.note_difference(name, Index{11}).ok());
  };
  make(5);
  make(9);
  distrust(checkpoints_to_try(config)[0].listed.name);
  CHECK(begins_at(true) == Index{5});
  SECTION("after that place") {
    CHECK(begins_at(false) == Index{9});
    CHECK(begins_at(false) == Index{5});  // a note counts for one process
  }
  SECTION("not because another log lacked something") {
    config.log_id = 43;
    CHECK(begins_at(false) == Index{0});
    config.log_id = 42;
    CHECK(begins_at(false) == Index{5});
  }
  SECTION("not if there is a trusted one meanwhile") {
    make(12);
    CHECK(begins_at(false) == Index{12});
  }
  SECTION("a process without checkpoints notes nothing") {
    config.skip_checkpoints = true;
    CHECK(begins_at(true) == Index{0});
    config.skip_checkpoints = false;
    CHECK(begins_at(false) == Index{9});
  }
  SECTION("the log's beginning counts like a checkpoint") {
    CHECK(begins_at(false) == Index{9});
    distrust(checkpoints_to_try(config)[0].listed.name);
    CHECK(begins_at(true) == Index{0});
    CHECK(begins_at(false) == Index{9});
  }
}

TEST_CASE_METHOD(World, "a checkpoint that is given up leaves nothing", "[packer][PACK-1]") {
  REQUIRE(packer->begin(Index{5}).ok());
  const std::string staging = packer->staging_path();
  CHECK(std::filesystem::exists(staging));
  SECTION("abandoned") { packer->abandon(); }
  SECTION("ended") { packer.reset(); }
  CHECK_FALSE(std::filesystem::exists(staging));
  if (packer == nullptr) return;
  CHECK(packer->idle());
  make(9);
}

TEST_CASE("the state for a new server is the one in a checkpoint", "[packer]") {
  CHECK_FALSE(carried_of(nlohmann::json::object()).ok());
  CHECK_FALSE(carried_of({{"carried", {{"clock", "x"}}}}).ok());
}
