// SPDX-License-Identifier: Apache-2.0
// GOAL    Only a published checkpoint is found, verified and unpacked, with unchanged content.
// METHOD  Small parts of a checkpoint; damage of each kind to each file in turn.
// CHECKS  IMAGE-2 (all or nothing, foreign ones refused), IMAGE-3 (the newest verified one stays),
//         messages with the file and the remedy.
// REPLAY  --rng-seed repeats contents and damage.
#include "checkpoint/image.h"

#include "tests/unit/checkpoint/image_harness.h"

using namespace crane;
using namespace crane::test;

TEST_CASE("manifest: a written one is read back, and every damage is detected", "[IMAGE-2]") {
  Manifest m = manifest_at(3, 1234);
  m.files = {{"upper.pack", 77, 0xdeadbeef, 1ULL << 40}, {"segment.pack", 1, 0, 2}};
  m.library_digest = "0123456789abcdef";
  m.time = 1'700'000'000;
  const std::string text = to_text(m);
  const auto read = parse_manifest(text, "manifest.json");
  INFO(reason(read) << text);
  REQUIRE(read.ok());
  CHECK(to_text(read.value()) == to_text([&] {
          Manifest same = m;
          same.node_state = read.value().node_state;
          return same;
        }()));
  CHECK(read.value().files == m.files);
  CHECK(read.value().at == m.at);
  CHECK(read.value().clock == m.clock);
  CHECK(read.value().node_state.find("18446744073709551615") != std::string::npos);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = text;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      REQUIRE(parse_manifest(bad, "manifest.json").error().code == Code::kDamaged);
    }
    REQUIRE(
        fails(parse_manifest(text.substr(0, i), "manifest.json"), Code::kDamaged, "manifest.json"));
  }
}

TEST_CASE("manifest: the text does not contain the log's id") {
  CHECK(digest_of_log("web", 4711).find("1267") == std::string::npos);  // 4711 in hexadecimal
  CHECK(digest_of_log("web", 4711) != digest_of_log("web", 4712));
  CHECK(digest_of_log("web", 4711) != digest_of_log("mail", 4711));
  CHECK(digest_of_log("web", 4711).size() == 32);
}

TEST_CASE("image: staged parts are published, listed, verified and unpacked", "[root][IMAGE-1]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  Checkpoints all = checkpoints_in(scratch.path());
  CHECK(all.list().value().empty());
  CHECK(all.find("newest").error().code == Code::kNotFound);
  auto staging = all.begin(Index{1234});
  INFO(reason(staging));
  REQUIRE(staging.ok());
  fill(staging.value(), random);
  fs::remove_all(staging.value().upper());
  make_hostile_tree(staging.value().upper(), random);
  REQUIRE(fs::exists(staging.value().path));
  std::map<std::string, std::map<std::string, std::string>> before;
  for (const char* part : {"images", "upper", "segment", "libcrane.so"}) {
    before[part] = snapshot(staging.value().path + "/" + part);
  }
  const std::string digest = digest_of_file(staging.value().library());
  const auto name = all.publish(staging.value(), manifest_at(3, 1234));
  INFO(reason(name));
  REQUIRE(name.ok());
  CHECK(name.value() == "00000003.000000001234");
  CHECK(!fs::exists(staging.value().path));

  auto listed = all.list();
  REQUIRE(listed.ok());
  REQUIRE(listed.value().size() == 1);
  const Listed& one = listed.value()[0];
  CHECK(one.name == name.value());
  CHECK(one.damage.empty());
  CHECK(!one.verified);
  CHECK(one.bytes() > 700'000);
  CHECK(one.manifest.library_digest == digest);
  CHECK(one.manifest.time > 1'600'000'000);
  REQUIRE(all.verify(name.value()).ok());
  CHECK(all.find("newest").value().verified);

  Expected ours = kOurs;
  const std::string target = scratch.path() + "/restored";
  const auto unpacked = all.unpack(name.value(), target, ours);
  INFO(reason(unpacked));
  REQUIRE(unpacked.ok());
  CHECK(unpacked.value().cursor == 123'456'789'012);
  CHECK(unpacked.value().node_state == one.manifest.node_state);
  for (const auto& [part, was] : before) {
    INFO(part);
    CHECK(snapshot(target + "/" + part) == was);
  }
  CHECK(slurp(target + "/manifest.json") == slurp(one.path + "/manifest.json"));
  CHECK(fails(all.unpack(name.value(), target, ours), Code::kExists, target));
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"checkpoints", "restored"});
}

TEST_CASE("image: the parts of its tier must exist, and a viewstamp is published once", "[root]") {
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  Checkpoints all = checkpoints_in(scratch.path());
  for (const char* part : {"images", "upper", "segment", "libcrane.so"}) {
    auto staging = all.begin(Index{5});
    REQUIRE(staging.ok());
    fill(staging.value(), random);
    fs::remove_all(staging.value().path + "/" + part);
    CHECK(fails(all.publish(staging.value(), manifest_at(1, 5)), Code::kBadArgument, part));
    CHECK(names_in(scratch.path() + "/checkpoints").empty());
  }
  auto staging = all.begin(Index{5});
  fs::create_directories(staging.value().upper());
  spill(staging.value().path + "/a name", "");
  CHECK(all.publish(staging.value(), manifest_at(1, 5)).error().code == Code::kBadArgument);
  staging = all.begin(Index{5});
  fs::create_directories(staging.value().upper());
  Manifest files_only = manifest_at(1, 5);
  files_only.tier = Tier::kRestart;
  const auto name = all.publish(staging.value(), files_only);
  INFO(reason(name));
  REQUIRE(name.ok());
  CHECK(all.unpack(name.value(), scratch.path() + "/r", kOurs).value().tier == Tier::kRestart);
  CHECK(names_in(scratch.path() + "/r") == std::vector<std::string>{"manifest.json", "upper"});

  const auto before = snapshot(scratch.path() + "/checkpoints/" + name.value());
  auto again = all.begin(Index{5});
  fill(again.value(), random);
  CHECK(all.publish(again.value(), manifest_at(1, 5)).error().code == Code::kExists);
  CHECK(snapshot(scratch.path() + "/checkpoints/" + name.value()) == before);
}

TEST_CASE("image: each kind of damage to each file is refused by name", "[root][IMAGE-2]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  Checkpoints all = checkpoints_in(scratch.path());
  const std::string name = publish_one(all, 3, 7, random);
  const std::string path = scratch.path() + "/checkpoints/" + name;
  REQUIRE(all.verify(name).ok());
  const auto refused = [&](const std::string& file) {
    const auto unpacked = all.unpack(name, scratch.path() + "/out", kOurs);
    INFO(file << ": " << reason(unpacked));
    CHECK(fails(unpacked, Code::kDamaged, file));
    CHECK(fails(unpacked, Code::kDamaged, "use another checkpoint"));
    CHECK(!fs::exists(scratch.path() + "/out"));
    CHECK(!fs::exists(scratch.path() + "/out.tmp"));
    CHECK(fails(all.verify(name), Code::kDamaged, file));
    CHECK(!all.list().value()[0].verified);
    CHECK((all.list().value()[0].damage.empty() || file == "manifest.json"));
  };
  const std::vector<std::string> files = {"images.pack", "libcrane.so.pack", "manifest.json",
                                          "segment.pack", "upper.pack"};
  for (const std::string& file : files) {
    const std::string good = slurp(path + "/" + file);
    for (int i = 0; i < 10; ++i) {
      std::string bad = good;
      const std::size_t at = random() % bad.size();
      bad[at] = static_cast<char>(bad[at] ^ (1 << (random() % 8)));
      INFO("byte " << at);
      spill(path + "/" + file, bad);
      refused(file);
      spill(path + "/" + file, good.substr(0, at));
      refused(file);
    }
    fs::remove(path + "/" + file);
    refused(file);
    spill(path + "/" + file, good);
    CHECK(all.verify(name).ok());
  }
  // A whole and valid pack of another checkpoint.
  const std::string other = publish_one(all, 3, 8, random);
  fs::copy_file(scratch.path() + "/checkpoints/" + other + "/upper.pack", path + "/upper.pack",
                fs::copy_options::overwrite_existing);
  CHECK(all.verify(name).error().code == Code::kDamaged);
  // A checkpoint under another one's name.
  fs::rename(scratch.path() + "/checkpoints/" + other,
             scratch.path() + "/checkpoints/" + name_of(Viewstamp{make_view(4, {}), Index{9}}));
  CHECK(!all.list().value()[0].damage.empty());
}

TEST_CASE("image: a foreign checkpoint, or one of another version, is refused", "[root][IMAGE-2]") {
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  Checkpoints all = checkpoints_in(scratch.path());
  const std::string name = publish_one(all, 3, 7, random);
  const auto refused = [&](Code code, const std::string& what, auto change) {
    Expected other = kOurs;
    change(other);
    INFO(what);
    const auto unpacked = all.unpack(name, scratch.path() + "/out", other);
    CHECK(fails(unpacked, code, what));
    CHECK(fails(unpacked, code, name));
    CHECK(!fs::exists(scratch.path() + "/out"));
  };
  refused(Code::kBadArgument, "group", [](Expected& e) { e.group = "mail"; });
  refused(Code::kBadArgument, "log", [](Expected& e) { e.log_digest = digest_of_log("web", 1); });
  refused(Code::kBadArgument, "program", [](Expected& e) { e.program = "/bin/redis"; });
  refused(Code::kWrongVersion, "layout", [](Expected& e) { e.layout_version = 10; });
  // Another format: a manifest with a valid checksum.
  const std::string path = scratch.path() + "/checkpoints/" + name + "/manifest.json";
  std::string text = slurp(path);
  text.replace(text.find("\"crane_checkpoint\": 2"), 21, "\"crane_checkpoint\": 3");
  const std::size_t body = text.find(",\n \"crc32c\": \"", text.rfind(']'));
  char seal[64];
  std::snprintf(seal, sizeof seal, ",\n \"crc32c\": \"%08x\"\n}\n", crc32c(text.data(), body));
  spill(path, text.substr(0, body) + seal);
  CHECK(fails(all.unpack(name, scratch.path() + "/out", kOurs), Code::kWrongVersion, "version 3"));
  CHECK(all.unpack("../x", scratch.path() + "/out", kOurs).error().code == Code::kNotFound);
}

TEST_CASE("image: a checkpoint after which replicas differ at the same place is distrusted",
          "[root][IMAGE-3]") {
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  Checkpoints all = checkpoints_in(scratch.path());
  const std::string older = publish_one(all, 1, 50, random);
  const std::string newer = publish_one(all, 1, 90, random);
  const auto distrusted = [&scratch](const std::string& name) {
    return checkpoints_in(scratch.path()).find(name).value().distrusted;  // another process
  };
  REQUIRE(all.note_difference(newer, Index{95}).ok());
  CHECK_FALSE(distrusted(newer));
  REQUIRE(all.note_difference(newer, Index{97}).ok());  // a data race of the server, for example
  CHECK_FALSE(distrusted(newer));
  REQUIRE(all.note_difference(newer, Index{97}).ok());
  CHECK(distrusted(newer));
  CHECK_FALSE(distrusted(older));
  CHECK(all.note_difference("9.9", Index{97}).error().code == Code::kNotFound);
  REQUIRE(all.verify(newer).ok());
  CHECK(distrusted(newer));
  // It does not cause the removal of another one, and is removed when there is a better one.
  CHECK(all.keep(1).value() == 0);
  REQUIRE(all.verify(older).ok());
  CHECK(all.keep(1).value() == 1);
  CHECK(all.list().value().at(0).name == older);
  spill(scratch.path() + "/checkpoints/" + older + "/differed", "?");
  CHECK_FALSE(distrusted(older));
}

TEST_CASE("image: retention keeps the newest, and the newest verified one", "[root][IMAGE-3]") {
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  Checkpoints all = checkpoints_in(scratch.path());
  std::vector<std::string> names;
  // A later view counts more than a higher index.
  const std::pair<std::uint64_t, std::uint64_t> stamps[] = {
      {1, 50}, {1, 900}, {2, 30}, {2, 31}, {12, 5}};
  for (const auto& [counter, index] : stamps) {
    names.push_back(publish_one(all, counter, index, random));
  }
  const auto left = [&] {
    std::vector<std::string> l;
    const auto listed = all.list();
    for (const Listed& one : listed.value()) l.push_back(one.name);
    return l;
  };
  REQUIRE(left() == std::vector<std::string>(names.rbegin(), names.rend()));
  REQUIRE(all.verify(names[0]).ok());
  REQUIRE(all.verify(names[1]).ok());
  // IMAGE-5: the checkpoint on which stores rely stays, however old it is.
  const Index oldest = all.find(names[0]).value().manifest.at.index;
  CHECK(all.keep(4, oldest).value() == 0);
  CHECK(left() == std::vector<std::string>(names.rbegin(), names.rend()));
  // A checkpoint that is being read is not removed.
  const Descriptor reading(
      ::open((scratch.path() + "/checkpoints/" + names[2]).c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(::flock(reading.get(), LOCK_SH) == 0);
  CHECK(all.keep(2).value() == 1);
  CHECK(left() == std::vector<std::string>{names[4], names[3], names[2], names[1]});
  CHECK(all.remove(names[2]).error().code == Code::kBusy);
  REQUIRE(::flock(reading.get(), LOCK_UN) == 0);
  CHECK(all.keep(2).value() == 1);
  CHECK(left() == std::vector<std::string>{names[4], names[3], names[1]});
  CHECK(all.keep(0).value() == 2);
  CHECK(left() == std::vector<std::string>{names[1]});
  CHECK(all.keep(0).value() == 0);
  // Damaged ones do not count, and are removed when a verified one stays.
  names.push_back(publish_one(all, 13, 1, random));
  spill(scratch.path() + "/checkpoints/" + names[5] + "/manifest.json", "{");
  CHECK(all.keep(1).value() == 1);
  CHECK(left() == std::vector<std::string>{names[1]});
  REQUIRE(all.remove(names[1]).ok());
  names.push_back(publish_one(all, 13, 1, random));
  spill(scratch.path() + "/checkpoints/" + names[6] + "/manifest.json", "{");
  CHECK(all.keep(1).value() == 0);
  CHECK(names_in(scratch.path() + "/checkpoints") == std::vector<std::string>{names[6]});
}
