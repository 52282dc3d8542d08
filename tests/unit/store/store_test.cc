// SPDX-License-Identifier: Apache-2.0
// GOAL    Every kind of store keeps STORE-T1..T5 of consensus/store/store.h.
// METHOD  The same cases on the simulated disk and on Berkeley DB in a temporary directory.
#include <random>

#include "tests/unit/store/store_harness.h"

using namespace crane;
using namespace crane::test;

TEMPLATE_TEST_CASE("store: stored entries exist after it is reopened", "[STORE-T1][STORE-T2]",
                   OnMemory, OnBdb) {
  TestType disk;
  Store* s = &disk.open();
  CHECK(s->state().identity.incarnation == 0);
  CHECK(s->state().damage == "");
  REQUIRE(s->reset(kOwner).ok());
  REQUIRE(s->promise(view(3)).ok());
  Log log;
  std::uint64_t n = 0;
  Cursor commit;
  for (int batch = 0; batch < 60; ++batch) {
    const Cursor from = log.end();
    for (int i = 0; i <= batch % 4; ++i) {
      ++n;
      log.append(3, n * 97 % 1500, n);
    }
    const auto last = s->append(from, log.between(from, log.end()), commit);
    REQUIRE(last.ok());
    CHECK(last.value() == log.end());
    commit = from;
  }
  s = &disk.open();
  CHECK(s->state().damage == "");
  CHECK(s->state().identity == kOwner);
  CHECK(s->state().promise == view(3));
  CHECK(s->state().last == log.end());
  CHECK(s->state().commit.last.index < log.end().last.index);
  CHECK(numbers(*s) == range(1, n));
}

TEMPLATE_TEST_CASE("store: another stamp deletes all above it, the same stamp changes nothing",
                   "[STORE-T3][U4]", OnMemory, OnBdb) {
  TestType disk;
  Store* s = &disk.open();
  REQUIRE(s->reset(kOwner).ok());
  Log log;
  std::vector<Cursor> at{log.end()};
  for (std::uint64_t n = 1; n <= 100; ++n) at.push_back(log.append(1, 300, n));
  REQUIRE(s->append(at[0], log.between(at[0], at[100]), {}).ok());
  // Stored again from the commit index, as at every grant.
  REQUIRE(s->append(at[40], log.between(at[40], at[60]), at[40]).ok());
  CHECK(s->state().last == at[100]);
  CHECK(numbers(*s) == range(1, 100));
  // Another leader's log: equal up to 57.
  log.back_to(at[57]);
  log.append(2, 10, 1058);
  REQUIRE(s->append(at[50], log.between(at[50], log.end()), at[50]).ok());
  CHECK(s->state().last == log.end());
  std::vector<std::uint64_t> wanted = range(1, 57);
  wanted.push_back(1058);
  CHECK(numbers(*s) == wanted);
  s = &disk.open();
  CHECK(s->state().damage == "");
  CHECK(numbers(*s) == wanted);
  // The deleted entries do not interfere with new ones, in any view.
  const Cursor from = log.end();
  for (std::uint64_t n = 1059; n <= 1070; ++n) {
    log.append(2, 200, n);
    wanted.push_back(n);
  }
  REQUIRE(s->append(from, log.between(from, log.end()), at[50]).ok());
  s = &disk.open();
  CHECK(s->state().damage == "");
  CHECK(numbers(*s) == wanted);
}

TEMPLATE_TEST_CASE("store: bytes that are not an entry are not stored", "[STORE-T2]", OnMemory,
                   OnBdb) {
  TestType disk;
  Store& s = disk.open();
  REQUIRE(s.reset(kOwner).ok());
  Log log;
  const Cursor begin = log.end();
  const Cursor one = log.append(1, 100, 1);
  log.append(1, 100, 2);
  std::vector<std::byte> bytes = log.between(begin, log.end());
  bytes[one.pos + 90] ^= std::byte{1};
  const auto last = s.append(begin, bytes, {});
  REQUIRE(last.ok());
  CHECK(last.value() == one);
  CHECK(numbers(s) == range(1, 1));
}

TEMPLATE_TEST_CASE("store: a damaged record is detected, and a reset makes a new store",
                   "[STORE-T4][U8]", OnMemory, OnBdb) {
  TestType disk;
  Store* s = &disk.open();
  REQUIRE(s->reset(kOwner).ok());
  Log log;
  for (std::uint64_t n = 1; n <= 100; ++n) {
    const Cursor from = log.end();
    log.append(1, 300, n);
    REQUIRE(s->append(from, log.between(from, log.end()), from).ok());
    REQUIRE(s->tidy().ok());
  }
  disk.rot_in_the_middle();
  s = &disk.open();
  INFO(s->state().damage);
  CHECK(s->state().damage != "");
  REQUIRE(s->reset({kLogId, 99}).ok());
  s = &disk.open();
  CHECK(s->state().damage == "");
  CHECK(s->state().identity.incarnation == 99);
  CHECK(s->state().last.last.index == Index{0});
}

TEST_CASE("store: the free space is checked before a transaction", "[STORE-T6]") {
  TemporaryDisk disk;
  BdbOptions o;
  o.directory = disk.path();
  o.spare_bytes = 0;
  auto opened = BdbStore::open(o);
  REQUIRE(opened.ok());
  using consensus::store::Work;
  CHECK(opened.value()->room(Work::kEntries, 1000).enough);
  opened.value().reset();
  o.spare_bytes = 1ULL << 60;
  opened = BdbStore::open(o);
  REQUIRE(opened.ok());
  const auto room = opened.value()->room(Work::kEntries, 1000);
  CHECK((!room.enough && room.low));
  CHECK((room.free > 0 && room.missing > 0));
  CHECK_FALSE(opened.value()->room(Work::kDrop, 0).enough);
  // Waiting entries need space for more than the next few.
  CHECK(opened.value()->room(Work::kEntries, 1000).missing >= room.missing + (1ULL << 57));
}

TEST_CASE("store: a truncated log frees its space, also in Berkeley DB's log", "[C9]") {
  OnBdb disk;
  Store* const s = &disk.open();
  REQUIRE(s->reset(kOwner).ok());
  const auto bytes_of_log = [&] {
    std::uintmax_t all = 0;
    for (const auto& f : std::filesystem::directory_iterator(disk.path() + "/env")) {
      if (f.path().filename().string().rfind("log.", 0) == 0) all += f.file_size();
    }
    return all;
  };
  Log log;
  for (std::uint64_t n = 1; n <= 3000; ++n) {
    const Cursor from = log.end();
    log.append(1, 1000, n);
    REQUIRE(s->append(from, log.between(from, log.end()), log.end()).ok());
    REQUIRE(s->tidy().ok());
  }
  CHECK(bytes_of_log() < 1'000'000);  // of 3 MB written
  REQUIRE(s->drop_below(Index{2900}).ok());
  REQUIRE(s->tidy().ok());
  CHECK(bytes_of_log() <= 400'000);
}

TEMPLATE_TEST_CASE("store: entries covered by a checkpoint can be dropped", "[C9]", OnMemory,
                   OnBdb) {
  TestType disk;
  Store* s = &disk.open();
  REQUIRE(s->reset(kOwner).ok());
  Log log;
  std::vector<Cursor> at{log.end()};
  for (std::uint64_t n = 1; n <= 300; ++n) {
    at.push_back(log.append(1, 300, n));
    REQUIRE(s->append(at[n - 1], log.between(at[n - 1], at[n]), at[n]).ok());
    REQUIRE(s->tidy().ok());
  }
  REQUIRE(s->drop_below(Index{200}).ok());
  const std::uint64_t first = value(s->state().first.last.index);
  CHECK(first > 100);
  CHECK(first < 200);
  CHECK(numbers(*s) == range(first + 1, 300));
  std::vector<std::byte> bytes;
  CHECK(s->read(Index{first}, 1, bytes).error().code == Code::kNotFound);
  s = &disk.open();
  CHECK(s->state().damage == "");
  CHECK(numbers(*s) == range(first + 1, 300));
}

TEST_CASE("store: a power loss loses only entries that were not synced", "[STORE-T1][STORE-T4]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  for (int round = 0; round < 300; ++round) {
    OnMemory disk;
    auto* s = dynamic_cast<MemStore*>(&disk.open());
    REQUIRE(s->reset(kOwner).ok());
    Log log;
    const std::uint64_t stored = 1 + random() % 20;
    for (std::uint64_t n = 1; n <= stored; ++n) {
      const Cursor from = log.end();
      log.append(1, random() % 1500, n);
      REQUIRE(s->append(from, log.between(from, log.end()), {}).ok());
    }
    const Cursor from = log.end();
    log.append(1, 1000, stored + 1);
    s->test_only_cut_short(from, log.between(from, log.end()), {});
    disk.disk.lose_power([&random] { return random(); });
    Store& again = disk.open();
    REQUIRE(again.state().damage == "");
    const std::uint64_t held = value(again.state().last.last.index);
    CHECK((held == stored || held == stored + 1));
    CHECK(numbers(again) == range(1, held));
  }
}

TEST_CASE("store: without syncs a power loss loses entries that were reported as stored",
          "[STORE-T1][mutant]") {
  std::mt19937_64 random(1);
  int lost = 0;
  for (int round = 0; round < 50; ++round) {
    OnMemory disk;
    Store& s = disk.open();
    REQUIRE(s.reset(kOwner).ok());
    disk.disk.test_only_no_sync = true;
    Log log;
    log.append(1, 1000, 1);
    REQUIRE(s.append({}, log.between({}, log.end()), {}).ok());
    disk.disk.lose_power([&random] { return random(); });
    if (disk.open().state().last.last.index < Index{1}) ++lost;
  }
  CHECK(lost > 10);
}

TEST_CASE("store: any single flipped bit is detected", "[STORE-T4][U8]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  for (int round = 0; round < 500; ++round) {
    OnMemory disk;
    Store& s = disk.open();
    REQUIRE(s.reset(kOwner).ok());
    REQUIRE(s.promise(view(1)).ok());
    Log log;
    for (std::uint64_t n = 1; n <= 5; ++n) {
      const Cursor from = log.end();
      log.append(1, 50, n);
      REQUIRE(s.append(from, log.between(from, log.end()), {}).ok());
    }
    disk.disk.rot(random());
    CHECK(disk.open().state().damage != "");
  }
}

TEST_CASE("store: a write-ahead log that lost its end is damaged, not short", "[STORE-T4][U8]") {
  OnBdb disk;
  Store* s = &disk.open();
  REQUIRE(s->reset(kOwner).ok());
  Log log;
  for (std::uint64_t n = 1; n <= 5; ++n) {
    const Cursor from = log.end();
    log.append(1, 300, n);
    REQUIRE(s->append(from, log.between(from, log.end()), {}).ok());
  }
  // The state after a kill: only the write-ahead log was written.
  const std::string copy = disk.path() + "/copy";
  std::filesystem::create_directory(copy);
  for (const char* name : {"high", "env"}) {
    std::filesystem::copy(disk.path() + "/" + name, copy + "/" + name,
                          std::filesystem::copy_options::recursive);
  }
  BdbOptions o;
  o.directory = copy;
  {
    auto whole = BdbStore::open(o);
    REQUIRE(whole.ok());
    CHECK(whole.value()->state().damage == "");
    CHECK(whole.value()->state().last == log.end());
  }
  std::filesystem::remove_all(copy + "/env");
  std::filesystem::copy(disk.path() + "/env", copy + "/env",
                        std::filesystem::copy_options::recursive);
  const std::string wal = copy + "/env/log.0000000001";
  // The last transaction is damaged: Berkeley DB takes that for the end of its log.
  std::fstream file(wal, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t at = bytes.rfind(std::string(200, '\5'));
  REQUIRE(at != std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at));
  file.put('\6');
  file.close();
  auto shorter = BdbStore::open(o);
  REQUIRE(shorter.ok());
  INFO(shorter.value()->state().damage);
  CHECK(shorter.value()->state().damage.find("but transaction") != std::string::npos);
}

TEST_CASE("store: a second process is refused", "[STORE-T2]") {
  OnBdb disk;
  REQUIRE(disk.open().reset(kOwner).ok());
  BdbOptions o;
  o.directory = disk.path();
  const auto second = BdbStore::open(o);
  REQUIRE(!second.ok());
  CHECK(second.error().code == Code::kBusy);
}

TEST_CASE("store: missing files are damage, not a new store", "[STORE-T4][U8]") {
  OnBdb disk;
  REQUIRE(disk.open().reset(kOwner).ok());
  disk.close();
  std::filesystem::remove_all(disk.path() + "/env");
  CHECK(disk.open().state().damage != "");
}
