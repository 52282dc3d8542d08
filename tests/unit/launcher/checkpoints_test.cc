// SPDX-License-Identifier: Apache-2.0
// The results and the output of crane-ctl checkpoint list and verify.
#include "runtime/launcher/ctl/checkpoints.h"

#include "tests/unit/checkpoint/image_harness.h"

using namespace crane::launcher;
using namespace crane::test;
using Json = nlohmann::json;

namespace {

// A group "web" that does not run, with the directories of its replicas.
class Directory {
 public:
  Directory() {
    for (const int replica : {0, 1, 2}) fs::create_directories(home(replica));
  }
  const std::string& dir() const { return scratch_.path(); }
  std::string home(int replica) const { return dir() + "/web/r" + std::to_string(replica); }
  std::string add(int replica, std::uint64_t view, std::uint64_t index, bool verified) {
    Checkpoints place = checkpoints_in(home(replica));
    const std::string name = publish_one(place, view, index, random_);
    if (verified) REQUIRE(place.verify(name).ok());
    return home(replica) + "/checkpoints/" + name;
  }
  AllKept find() const { return crane::checkpoint::find_kept(dir() + "/web"); }

 private:
  Scratch scratch_;
  std::mt19937_64 random_{7};
};

void flip(const std::string& path) {
  std::string bytes = slurp(path);
  REQUIRE(!bytes.empty());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  spill(path, bytes);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("checkpoint list: all replicas' checkpoints, newest first; a later view is newer",
          "[ctl]") {
  Directory group;
  group.add(0, 2, 483, true);
  group.add(2, 3, 20, false);
  group.add(1, 2, 483, true);
  const AllKept found = group.find();
  CHECK(found.problems.empty());
  const Json listed = checkpoints_json("web", found.checkpoints);
  REQUIRE(listed["checkpoints"].size() == 3);
  const Json& first = listed["checkpoints"][0];
  CHECK(first["name"] == "00000003.000000000020");
  CHECK(first["view"] == 3);
  CHECK(first["index"] == 20);
  CHECK(first["replica"] == 2);
  CHECK(first["verified"] == false);
  CHECK(first["damage"].is_null());
  CHECK(first["tier"] == "criu");
  CHECK(first["time"].get<std::int64_t>() > 1'600'000'000);
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(first["path"].get<std::string>())) {
    if (entry.path().extension() == ".pack") bytes += entry.file_size();
  }
  CHECK(first["bytes"] == bytes);
  CHECK(listed["checkpoints"][1]["replica"] == 0);  // equal viewstamps: lower replica first
  CHECK(listed["checkpoints"][1]["verified"] == true);
  CHECK(listed["checkpoints"][2]["replica"] == 1);
}

TEST_CASE("checkpoint list: the table has times in UTC, and damage below", "[ctl]") {
  Json listed{{"group", "web"}, {"checkpoints", Json::array()}};
  CHECK(checkpoints_table(listed) ==
        "web: no checkpoint here; crane-ctl checkpoint now takes one\n");
  const auto row = [](int replica, const char* name, std::uint64_t bytes, bool verified) {
    return Json{{"replica", replica}, {"name", name},      {"view", 2},
                {"index", 20},        {"time", 86'399},    {"bytes", bytes},
                {"tier", "criu"},     {"damage", nullptr}, {"verified", verified}};
  };
  listed["checkpoints"].push_back(row(1, "a", 12'345'678, true));
  listed["checkpoints"].push_back(row(2, "b", 999, false));
  listed["checkpoints"].push_back(row(0, "c", 0, false));
  listed["checkpoints"].push_back(row(1, "d", 999'960, false));
  Json& third = listed["checkpoints"][2];
  third["time"] = third["bytes"] = third["tier"] = nullptr;
  third["damage"] = "x/manifest.json is missing";
  CHECK(checkpoints_table(listed) ==
        "web:\n"
        "  REPLICA  CHECKPOINT  WHEN (UTC)              SIZE  TIER  STATE\n"
        "  1        a           1970-01-01 23:59:59  12.3 MB  criu  verified\n"
        "  2        b           1970-01-01 23:59:59    999 B  criu  not verified\n"
        "  0        c           -                          -  -     damaged\n"
        "  1        d           1970-01-01 23:59:59   1.0 MB  criu  not verified\n"
        "damaged: x/manifest.json is missing\n");
}

TEST_CASE("checkpoint list: a checkpoint without a manifest is listed as damaged", "[ctl]") {
  Directory group;
  group.add(1, 2, 10, true);
  const std::string path = group.add(1, 2, 20, true);
  fs::remove(path + "/manifest.json");
  fs::create_directories(group.home(1) + "/checkpoints/.new-30-1/images");  // not a checkpoint yet
  const Json listed = checkpoints_json("web", group.find().checkpoints);
  REQUIRE(listed["checkpoints"].size() == 2);
  const Json& first = listed["checkpoints"][0];
  CHECK(first["index"] == 20);
  CHECK(first["verified"] == false);
  CHECK(has(first["damage"].get<std::string>(), path + "/manifest.json"));
  CHECK(first["time"].is_null());
  CHECK(listed["checkpoints"][1]["verified"] == true);
  CHECK(has(checkpoints_table(listed), "damaged: " + path + "/manifest.json"));
}

TEST_CASE("checkpoint list: no checkpoints are no problem, and nothing is created", "[ctl]") {
  Directory group;
  const AllKept found = group.find();
  CHECK(found.checkpoints.empty());
  CHECK(found.problems.empty());
  CHECK_FALSE(fs::exists(group.home(0) + "/checkpoints"));
  spill(group.home(0) + "/checkpoints", "a file");
  CHECK(group.find().problems.size() == 1);
  CHECK_FALSE(group.find().denied);
}

TEST_CASE("checkpoint list, verify: missing permission is neither damage nor absence", "[ctl]") {
  if (::geteuid() != 0) return;  // only root can become another user
  Directory group;
  const std::string path = group.add(1, 2, 20, true);
  const AllKept all = group.find();
  REQUIRE(all.checkpoints.size() == 1);
  REQUIRE(::chmod(group.dir().c_str(), 0755) == 0);
  for (const std::string& closed : {path, group.home(1) + "/checkpoints", group.home(1)}) {
    REQUIRE(::chmod(closed.c_str(), 0700) == 0);
    std::string sentence;
    REQUIRE(::seteuid(65534) == 0);
    const AllKept found = group.find();
    const Verdict verdict = verify_checkpoint(all.checkpoints[0], "", sentence);
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(::chmod(closed.c_str(), 0755) == 0);
    INFO(closed);
    CHECK(found.checkpoints.empty());
    CHECK(found.denied);
    REQUIRE(found.problems.size() == 1);
    CHECK(has(found.problems[0], closed == path ? path : group.home(1) + "/checkpoints"));
    CHECK(has(found.problems[0], "not permitted"));
    CHECK(verdict == Verdict::kDenied);
  }
}

TEST_CASE("checkpoint verify: intact, damaged with the file's name, intact again", "[ctl]") {
  Directory group;
  const std::string path = group.add(1, 2, 20, false);
  std::string sentence;
  const auto verify = [&] {
    return verify_checkpoint(group.find().checkpoints.at(0), "", sentence);
  };
  CHECK(verify() == Verdict::kWell);
  CHECK(has(sentence, "replica 1, checkpoint 00000002.000000000020: correct, "));
  CHECK(group.find().checkpoints[0].listed.verified);
  for (const char* part : {"images", "upper", "segment", "libcrane.so"}) {
    const std::string file = path + "/" + part + ".pack";
    flip(file);
    CHECK(verify() == Verdict::kDamaged);
    INFO(sentence);
    CHECK(has(sentence, file));
    CHECK_FALSE(group.find().checkpoints[0].listed.verified);
    flip(file);
    CHECK(verify() == Verdict::kWell);
    CHECK(group.find().checkpoints[0].listed.verified);
  }
  flip(path + "/manifest.json");
  CHECK(verify() == Verdict::kDamaged);
  CHECK(has(sentence, path + "/manifest.json"));
}

TEST_CASE("checkpoint verify: a checkpoint that its node is removing is not damaged", "[ctl]") {
  Directory group;
  group.add(1, 2, 20, true);
  const AllKept found = group.find();
  std::string sentence;
  {
    const Descriptor lock(::open(found.checkpoints[0].listed.path.c_str(), O_RDONLY));
    REQUIRE(::flock(lock.get(), LOCK_EX) == 0);  // as its remover holds it
    CHECK(verify_checkpoint(found.checkpoints[0], "", sentence) == Verdict::kRemoved);
  }
  REQUIRE(checkpoints_in(group.home(1)).remove(found.checkpoints[0].listed.name).ok());
  CHECK(verify_checkpoint(found.checkpoints[0], "", sentence) == Verdict::kRemoved);
  CHECK(has(sentence, "removed meanwhile"));
}

TEST_CASE("checkpoint verify: names without leading zeros, and invalid names", "[ctl]") {
  CHECK(checkpoint_name("2.20") == "00000002.000000000020");
  CHECK(checkpoint_name("00000002.000000000020") == "00000002.000000000020");
  for (const char* none : {"", ".", "2", "2.", ".20", "2.20.1", "a.b", "-2.20", "2. 20", "+2.20",
                           "72057594037927936.1", "2.18446744073709551616"}) {
    INFO(none);
    CHECK(checkpoint_name(none).empty());
  }
}
