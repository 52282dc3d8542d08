// SPDX-License-Identifier: Apache-2.0
// GOAL    every fabric keeps the guarantees FABRIC-F1..F8 of consensus/fabric/fabric.h;
//         conformance_planes_test.cc has FABRIC-F9..F14.
// METHOD  one test case per guarantee, templated on the group that opens the fabrics.
// CHECKS  the guarantee's text, with really stopped and killed processes where it mentions them.
// REPLAY  the cases are deterministic except for the moment a child is stopped, which is printed.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <set>

#include "tests/fabric/harness.h"
#include "tests/fabric/tcp_group.h"
#include "tests/fabric/trio.h"

namespace crane::test {
TEMPLATE_TEST_CASE("F1: writes land complete and in the order of the calls", "[fabric]", ShmGroup,
                   TcpGroup) {
  Trio<TestType> t;
  const Key key = t.grant_b_to_a();
  REQUIRE(write_ok(*t.a, kB, key, 0, "aaaaaaaa"));
  REQUIRE(write_ok(*t.a, kB, key, 4, "bbbb"));
  REQUIRE(write_ok(*t.a, kB, key, 6, "c"));
  drain(*t.b);
  CHECK(log_text(*t.b, 0, 8) == "aaaabbcb");
  // Many laps of the fabric's queue, with writes of all sizes, compared with a model.
  std::mt19937_64 random(1);
  std::vector<std::byte> model(TestType::kLogBytes);
  std::memcpy(model.data(), t.b->log_memory().data(), 8);
  for (int i = 0; i < times<TestType>(3000); ++i) {
    std::vector<std::byte> data(random() % 20000);
    for (auto& byte : data) byte = static_cast<std::byte>(random());
    const std::uint64_t offset = random() % (model.size() - data.size());
    t.a->write(kB, key, offset, data, Token{1});
    REQUIRE(completion_of(*t.a, Token{1}).ok);
    std::memcpy(model.data() + offset, data.data(), data.size());
    if (random() % 7 == 0) drain(*t.b);
  }
  drain(*t.b);
  CHECK(std::memcmp(model.data(), t.b->log_memory().data(), model.size()) == 0);
}

TEMPLATE_TEST_CASE("F2: no write under an old key appears after a revoke", "[fabric]", ShmGroup,
                   TcpGroup) {
  Trio<TestType> t;
  const Key key = t.grant_b_to_a();
  REQUIRE(write_ok(*t.a, kB, key, 0, "before"));
  TestType::half_write(*t.a, kB, key, kLate, bytes_of("late"));
  t.b->revoke_writes(kA);
  CHECK(log_text(*t.b, 0, 6) == "before");
  CHECK_FALSE(TestType::other_half(*t.a, kB, key));
  CHECK_FALSE(write_ok(*t.a, kB, key, 0, "after!"));
  drain(*t.b);
  CHECK(log_text(*t.b, 0, 6) == "before");
  CHECK(log_text(*t.b, kLate, 4) == std::string(4, '\0'));
  // Nor after a new grant to the same peer (U6).
  const Key again = t.grant_b_to_a();
  CHECK(again != key);
  CHECK_FALSE(write_ok(*t.a, kB, key, 0, "after!"));
  CHECK(write_ok(*t.a, kB, again, 0, "newkey"));
  drain(*t.b);
  CHECK(log_text(*t.b, 0, 6) == "newkey");
  CHECK(log_text(*t.b, kLate, 4) == std::string(4, '\0'));
}

namespace {

// A child that writes blocks 1, 2, 3, ..., each of one repeated word, over the same place.
constexpr std::size_t kBlockWords = 64 * 1024;  // 512 KiB: most stops hit the middle of a copy

template <typename Group>
void stream_blocks(Group& group, Shared<StreamState>& shared) {
  auto f = group.open(0);
  if (!f) ::_exit(3);
  shared->ready = true;
  std::vector<std::uint64_t> block(kBlockWords);
  std::uint64_t n = 0;
  std::uint64_t key = 0;
  FabricEvent events[8];
  for (;;) {
    while (f->poll(events) != 0) {
    }
    const std::uint64_t wanted = shared->key.load();
    if (wanted == 0) continue;
    if (wanted != key) key = wanted;
    std::fill(block.begin(), block.end(), n + 1);
    f->write(kB, Key{key}, 0, std::as_bytes(std::span(block)), Token{n});
    const std::size_t got = f->poll(events);
    for (std::size_t i = 0; i < got; ++i) {
      if (events[i].kind != Kind::kCompletion) continue;
      if (events[i].ok) {
        shared->completed = ++n;
      } else {
        ++shared->refused;
      }
    }
  }
}

std::span<const std::uint64_t> words_of(Fabric& f) {
  return {reinterpret_cast<const std::uint64_t*>(f.log_memory().data()), kBlockWords};
}

// One whole write or, if the fabric allows partial writes, its beginning over the previous write.
template <typename Group>
bool in_order(std::span<const std::uint64_t> words) {
  const std::uint64_t first = words.front();
  const auto rest =
      std::find_if(words.begin(), words.end(), [&](std::uint64_t w) { return w != first; });
  return rest == words.end() ||
         (kPartial<Group> &&
          std::all_of(rest, words.end(), [&](std::uint64_t w) { return w + 1 == first; }));
}

}  // namespace

TEMPLATE_TEST_CASE(
    "F2, F3: the write of a writer stopped during a copy does not land after the revoke",
    "[fabric][processes]", ShmGroup, TcpGroup) {
  TestType group;
  auto b = group.open(1);
  Shared<StreamState> shared;
  Child writer([&] { stream_blocks(group, shared); });
  REQUIRE(until([&] { return shared->ready.load(); }));
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < times<TestType>(40); ++round) {
    drain(*b);
    const std::uint64_t before = shared->completed;
    auto key = b->permit_writes(kA);
    REQUIRE(key.ok());
    shared->key = value(key.value());
    REQUIRE(until([&] { return drain(*b), shared->completed > before + random() % 4; }));
    writer.stop();
    const std::uint64_t completed = shared->completed;
    b->revoke_writes(kA);
    const std::vector<std::uint64_t> seen(words_of(*b).begin(), words_of(*b).end());
    const std::uint64_t visible = seen.front();
    CHECK(in_order<TestType>(seen));
    CHECK(seen.back() >= completed);  // FABRIC-F3: completed, hence visible
    CHECK(visible <= completed + 1);  // one write may be published but not yet reported
    const std::uint64_t refused = shared->refused;
    writer.resume();
    REQUIRE(until([&] {                     // the writer continues, without effect
      if (!TestType::kOneSided) drain(*b);  // b's process refuses its writes
      return shared->refused > refused + 2;
    }));
    drain(*b);
    CHECK(std::equal(seen.begin(), seen.end(), words_of(*b).begin()));
    b->tidy();
  }
}

TEMPLATE_TEST_CASE("F3, F7: a writer killed at any moment leaves whole writes and an event",
                   "[fabric][processes]", ShmGroup, TcpGroup) {
  TestType group;
  auto b = group.open(1);
  for (int round = 0; round < times<TestType>(8); ++round) {
    Shared<StreamState> shared;
    Child writer([&] { stream_blocks(group, shared); });
    REQUIRE(until([&] { return drain(*b), shared->ready.load(); }));
    drain(*b);
    auto key = b->permit_writes(kA);
    REQUIRE(key.ok());
    shared->key = value(key.value());
    REQUIRE(until([&] { return drain(*b), shared->completed > 3; }));
    const auto is_down = [](const Seen& s) { return s.kind == Kind::kPeerDown && s.peer == kA; };
    writer.kill();
    CHECK(drain_until(*b, is_down, 2000));
    CHECK_FALSE(b->connected(kA));
    CHECK(in_order<TestType>(words_of(*b)));
    CHECK(words_of(*b).back() >= shared->completed);
    b->revoke_writes(kA);
  }
}

TEMPLATE_TEST_CASE("F3: completed writes to a stopped, then killed owner exist after its restart",
                   "[fabric][processes]", ShmGroup, TcpGroup) {
  TestType group;
  auto a = group.open(0);
  Shared<StreamState> shared;
  Child owner([&] {
    auto f = group.open(1);
    auto key = f->permit_writes(kA);
    shared->key = value(key.value());
    FabricEvent events[8];
    for (;;) f->poll(events);
  });
  REQUIRE(until([&] { return drain(*a), a->connected(kB) && shared->key != 0; }));
  if (TestType::kOneSided) owner.stop();  // the writes complete without its processor
  const Key key{shared->key.load()};
  for (int i = 0; i < 100; ++i) {
    REQUIRE(write_ok(*a, kB, key, static_cast<std::uint64_t>(i) * 4, "abcd"));
  }
  if (!TestType::kOneSided) owner.stop();
  owner.kill();
  auto back = group.open(1);
  REQUIRE(back);
  CHECK(back->survived());
  drain(*back);
  CHECK(log_text(*back, 396, 4) == "abcd");
  CHECK(back->permitted(kA) == key);
}

TEMPLATE_TEST_CASE("F4: every operation completes once, in order, also to a dead peer", "[fabric]",
                   ShmGroup, TcpGroup) {
  Trio<TestType> t;
  const Key key = t.grant_b_to_a();
  for (int life = 0; life < 2; ++life) {
    const auto bytes = bytes_of("x");
    std::uint64_t n = 0;
    for (int i = 0; i < 50; ++i) {
      t.a->write(kB, key, 0, bytes, Token{n++});
      t.a->read(kB, 0, 10, Token{n++});
      t.a->read_cell(kB, 0, Token{n++});
      t.a->open_log(kB, key, Token{n++});
    }
    std::uint64_t next = 0;
    for (const Seen& s : drain(*t.a)) {
      if (s.kind == Kind::kCompletion) CHECK(s.token == Token{next++});
    }
    CHECK(next == n);
    t.b.reset();
    drain(*t.a);
  }
}

TEMPLATE_TEST_CASE("F5: after a failed write all later ones fail until open_log", "[fabric]",
                   ShmGroup, TcpGroup) {
  Trio<TestType> t;
  const Key key = t.grant_b_to_a();
  const auto big = std::vector<std::byte>(1U << 20);
  bool full = false;
  t.group.hold(*t.b);
  for (int i = 0; i < times<TestType>(64) && !full;
       ++i) {  // the owner takes nothing in: finally there is no room
    t.a->write(kB, key, 0, big, Token{1});
    full = !completion_of(*t.a, Token{1}).ok;
  }
  if (kNeverFull<TestType>) {
    CHECK_FALSE(full);
    full = !write_ok(*t.a, kB, key, TestType::kLogBytes - 1, "past the end");
  }
  REQUIRE(full);
  CHECK_FALSE(write_ok(*t.a, kB, key, 0, "small enough"));
  t.group.release(*t.b);
  drain(*t.b);
  CHECK_FALSE(write_ok(*t.a, kB, key, 0, "room again"));
  t.a->open_log(kB, key, Token{2});
  CHECK(completion_of(*t.a, Token{2}).ok);
  CHECK(write_ok(*t.a, kB, key, 0, "from here"));
  t.a->close_log(kB);
  CHECK_FALSE(write_ok(*t.a, kB, key, 0, "closed"));
  t.a->open_log(kB, key, Token{2});
  CHECK(completion_of(*t.a, Token{2}).ok);
  CHECK(write_ok(*t.a, kB, key, 0, "and there"));
}

TEMPLATE_TEST_CASE("F6: keys are fresh, personal, and never work again", "[fabric]", ShmGroup,
                   TcpGroup) {
  Trio<TestType> t;
  std::set<std::uint64_t> keys;
  for (int i = 0; i < 50; ++i) {
    for (const ReplicaId peer : {kA, kC}) {
      auto key = t.b->permit_writes(peer);
      REQUIRE(key.ok());
      CHECK(key.value() != consensus::kNoKey);
      CHECK(keys.insert(value(key.value())).second);
    }
  }
  const Key key = t.grant_b_to_a();
  keys.insert(value(key));
  CHECK_FALSE(write_ok(*t.c, kB, key, 0, "stolen"));
  CHECK_FALSE(write_ok(*t.a, kC, key, 0, "elsewhere"));
  for (const std::uint64_t old : keys) {
    if (Key{old} != key) CHECK_FALSE(write_ok(*t.a, kB, Key{old}, 0, "old"));
  }
  CHECK(write_ok(*t.a, kB, key, 0, "mine"));
  SECTION("also in the next incarnation") { t.b.reset(); }
  SECTION("also after the memory was lost") {
    t.b.reset();
    t.group.lose_memory(1);
  }
  if (!t.b) t.b = t.group.open(1);
  for (int i = 0; i < 50; ++i) {
    auto fresh = t.b->permit_writes(kA);
    REQUIRE(fresh.ok());
    CHECK(keys.insert(value(fresh.value())).second);
  }
}

TEMPLATE_TEST_CASE("F7: death and restart of a peer are reported at once", "[fabric][processes]",
                   ShmGroup, TcpGroup) {
  TestType group;
  auto b = group.open(1);
  for (int life = 0; life < 3; ++life) {
    Shared<StreamState> shared;
    Child peer([&] {
      auto f = group.open(0);
      shared->ready = f != nullptr;
      FabricEvent events[8];
      for (;;) f->poll(events);
    });
    const auto up = [](const Seen& s) { return s.kind == Kind::kPeerUp && s.peer == kA; };
    const auto down = [](const Seen& s) { return s.kind == Kind::kPeerDown && s.peer == kA; };
    CHECK(drain_until(*b, up, 5000));
    drain(*b);
    peer.kill();
    CHECK(b->prepare_to_sleep());
    pollfd fd{b->event_fd(), POLLIN, 0};
    CHECK(::poll(&fd, 1, 2000) == 1);  // without a time-out of the fabric
    CHECK(drain_until(*b, down, 100));
  }
}

TEMPLATE_TEST_CASE("F8: a dead, stopped or full peer disturbs no other", "[fabric][processes]",
                   ShmGroup, TcpGroup) {
  TestType group;
  auto a = group.open(0);
  Shared<StreamState> shared;
  Child stopped([&] {
    auto f = group.open(1);
    shared->key = value(f->permit_writes(kA).value());
    FabricEvent events[8];
    for (;;) f->poll(events);
  });
  REQUIRE(until([&] { return drain(*a), a->connected(kB) && shared->key != 0; }));
  stopped.stop();
  auto c = group.open(2);
  drain(*a);
  const Key to_b{shared->key.load()};
  auto to_c = c->permit_writes(kA);
  REQUIRE(to_c.ok());
  const auto block = std::vector<std::byte>(256U << 10, std::byte{7});
  bool refused = false;
  const auto blocks = static_cast<std::uint64_t>(times<TestType>(200));
  for (std::uint64_t i = 0; i < blocks; ++i) {
    a->write(kB, to_b, 0, block, Token{1});
    refused = !completion_of(*a, Token{1}).ok;
    REQUIRE(write_ok(*a, kC, to_c.value(), i * 8, "good day"));
    drain(*c);
  }
  CHECK(refused != kNeverFull<TestType>);  // its backlog is bounded
  while (a->send_request(kB, bytes_of("no one reads this"))) {
  }
  CHECK(a->send_request(kC, bytes_of("still open")));
  if (TestType::kOneSided) {  // a backlog does not disconnect it from the group (FABRIC-F9)
    let_pass_us(50'000);
    drain(*a);
    CHECK(a->connected(kB));
    a->read_cell(kB, 0, Token{2});
    CHECK(completion_of(*a, Token{2}).ok);
  }
  stopped.kill();
  drain(*a);
  REQUIRE(write_ok(*a, kC, to_c.value(), 0, "good bye"));
  drain(*c);
  CHECK(log_text(*c, 0, 8) == "good bye");
}

}  // namespace crane::test
