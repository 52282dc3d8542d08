// SPDX-License-Identifier: Apache-2.0
// GOAL    every fabric keeps the guarantees FABRIC-F9..F14 of consensus/fabric/fabric.h.
// METHOD  as in conformance_test.cc.
#include <poll.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fabric/harness.h"
#include "tests/fabric/tcp_group.h"
#include "tests/fabric/trio.h"

namespace crane::test {

TEMPLATE_TEST_CASE("F9: cells and requests pass a full log plane without a permission", "[fabric]",
                   ShmGroup, TcpGroup) {
  Trio<TestType> t;
  const Key key = t.grant_b_to_a();
  const auto big = std::vector<std::byte>(1U << 20);
  for (int i = 0; i < times<TestType>(64); ++i) t.a->write(kB, key, 0, big, Token{1});
  drain(*t.a);
  t.b->set_cell(2, {{1, 2, 3}});
  t.a->read_cell(kB, 2, Token{2});
  CHECK(completion_of(*t.a, Token{2}).ok);
  CHECK(t.a->send_request(kB, bytes_of("hello")));
  t.b->revoke_writes(kA);
  CHECK(t.a->send_request(kB, bytes_of("again")));
  std::vector<std::string> got;
  for (const Seen& s : drain(*t.b)) {
    if (s.kind == Kind::kRequest) got.push_back(text_of(s.data));
  }
  CHECK(got == std::vector<std::string>{"hello", "again"});
}

TEMPLATE_TEST_CASE("F10: reads of a cell are complete and in order", "[fabric][processes]",
                   ShmGroup, TcpGroup) {
  TestType group;
  auto a = group.open(0);
  Shared<StreamState> shared;
  Child owner([&] {
    auto f = group.open(1);
    for (std::uint64_t n = 1;; ++n) {
      f->set_cell(1, {{n, n + 1, n + 2, n + 3, n + 4, n + 5}});
      shared->completed = n;
    }
  });
  REQUIRE(until([&] { return drain(*a), a->connected(kB) && shared->completed > 100; }));
  std::uint64_t last = 0;
  std::uint64_t whole = 0;
  const auto look = [&](const consensus::CellValue& v) {
    for (std::size_t w = 0; w < consensus::kCellWords; ++w) REQUIRE(v.words[w] == v.words[0] + w);
    CHECK(v.words[0] >= last);
    last = v.words[0];
  };
  // Without one-sided reads each cell costs a round trip.
  const int most = TestType::kOneSided ? 20000 : 3000;
  const auto reads = static_cast<std::uint64_t>(times<TestType>(most));
  for (std::uint64_t i = 0; i < reads; ++i) {
    a->read_cell(kB, 1, Token{i});
    const Seen s = completion_of(*a, Token{i});
    if (!s.ok) continue;  // the owner changed the cell during each try: permitted, and rare
    ++whole;
    consensus::CellValue v;
    REQUIRE(s.data.size() == sizeof v);
    std::memcpy(&v, s.data.data(), sizeof v);
    look(v);
  }
  CHECK(whole > reads / 20);
}

TEMPLATE_TEST_CASE("F10: a cell is complete wherever its owner died", "[fabric][processes]",
                   ShmGroup, TcpGroup) {
  TestType group;
  std::uint64_t last = 0;
  for (int life = 0; life < times<TestType>(60); ++life) {
    Shared<StreamState> shared;
    Child owner([&] {
      auto f = group.open(1);
      for (std::uint64_t n = f->own_cell(1).words[0] + 1;; ++n) {
        f->set_cell(1, {{n, n + 1, n + 2, n + 3, n + 4, n + 5}});
        shared->completed = n;
      }
    });
    REQUIRE(until([&] { return shared->completed > last + 100; }));
    owner.kill();
    const std::uint64_t set = shared->completed;
    auto back = group.open(1);
    REQUIRE(back);
    const consensus::CellValue v = back->own_cell(1);
    for (std::size_t w = 0; w < consensus::kCellWords; ++w) REQUIRE(v.words[w] == v.words[0] + w);
    CHECK(v.words[0] >= set);
    last = v.words[0];
  }
}

TEMPLATE_TEST_CASE("F11: requests arrive once, whole, in order, and name their sender", "[fabric]",
                   ShmGroup, TcpGroup) {
  Trio<TestType> t;
  int sent = 0;
  int next_a = 0;
  int next_c = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 9; ++i, ++sent) {
      CHECK(t.a->send_request(kB, bytes_of("a" + std::to_string(sent))));
      CHECK(t.c->send_request(kB, bytes_of("c" + std::to_string(sent))));
    }
    for (const Seen& s : drain(*t.b)) {
      if (s.kind != Kind::kRequest) continue;
      if (s.peer == kA) CHECK(text_of(s.data) == "a" + std::to_string(next_a++));
      if (s.peer == kC) CHECK(text_of(s.data) == "c" + std::to_string(next_c++));
    }
  }
  CHECK(next_a == sent);
  CHECK(next_c == sent);
  int accepted = 0;
  while (accepted < 10000 && t.a->send_request(kB, bytes_of("full?"))) ++accepted;
  CHECK(accepted < 10000);
  int got = 0;
  for (const Seen& s : drain(*t.b)) got += s.kind == Kind::kRequest ? 1 : 0;
  CHECK(got == accepted);
}

TEMPLATE_TEST_CASE("F12: a read returns the bytes that the owner applied, and the reader's writes",
                   "[fabric]", ShmGroup, TcpGroup) {
  Trio<TestType> t;
  const Key key = t.grant_b_to_a();
  const auto read = [&](Fabric& f, std::uint64_t offset, std::uint64_t n) {
    f.read(kB, offset, n, Token{4});
    const Seen s = completion_of(f, Token{4});
    return s.ok ? text_of(s.data) : "failed";
  };
  const auto own = bytes_of("written by b");
  std::memcpy(t.b->log_memory().data() + 100, own.data(), own.size());
  CHECK(read(*t.a, 100, 12) == "written by b");
  CHECK(read(*t.c, 100, 12) == "written by b");
  REQUIRE(write_ok(*t.a, kB, key, 103, "TTEN"));
  REQUIRE(write_ok(*t.a, kB, key, 106, "-by-"));
  CHECK(read(*t.a, 100, 10) == "wriTTE-by-");
  CHECK(read(*t.a, 105, 2) == "E-");
  drain(*t.b);
  CHECK(read(*t.c, 100, 10) == "wriTTE-by-");
  CHECK(read(*t.a, TestType::kLogBytes - 1, 2) == "failed");
  t.b->revoke_writes(kA);
  CHECK(read(*t.a, 100, 10) == "wriTTE-by-");
}

TEMPLATE_TEST_CASE("F13: a bell wakes a sleeping peer, and costs nothing if the peer is awake",
                   "[fabric]", ShmGroup, TcpGroup) {
  Trio<TestType> t;
  const Key key = t.grant_b_to_a();
  const auto readable = [&] {
    pollfd fd{t.b->event_fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  };
  // On a network, arriving bytes and timers also wake the reader, even if there is nothing to do.
  const auto quiet = [&] { return !TestType::kOneSided || !readable(); };
  const auto put = [&](const std::string& text) {
    if (TestType::kOneSided) return write_ok(*t.a, kB, key, 0, text);
    t.a->write(kB, key, 0, bytes_of(text), Token{9});  // completes only while its owner polls
    return true;
  };
  drain(*t.b);
  CHECK(quiet());
  REQUIRE(put("awake"));
  t.a->ring_doorbell(kB);
  CHECK(quiet());  // b is awake: no process writes the descriptor
  // But b must not sleep before it has seen the bytes that arrived.
  CHECK((!t.b->prepare_to_sleep() || (!TestType::kOneSided && until(readable))));
  drain(*t.b);
  REQUIRE(t.b->prepare_to_sleep());
  CHECK(quiet());
  REQUIRE(put("asleep"));
  CHECK(quiet());  // batched by the caller
  t.a->ring_doorbell(kB);
  CHECK(until(readable));
  t.a->ring_doorbell(kB);
  drain(*t.b);
  CHECK(log_text(*t.b, 0, 6) == "asleep");
  CHECK(quiet());
  REQUIRE(t.b->prepare_to_sleep());
  CHECK(t.c->send_request(kB, bytes_of("mail")));
  t.c->ring_doorbell(kB);
  CHECK(until(readable));
  drain(*t.b);
  t.b->wake_self();
  CHECK(until(readable));
  drain(*t.b);
  CHECK(quiet());
}

TEMPLATE_TEST_CASE("F13: no wake-up is lost between two processes", "[fabric][processes]", ShmGroup,
                   TcpGroup) {
  TestType group;
  auto a = group.open(0);
  Shared<StreamState> shared;
  Child echo([&] {  // answers each request, and sleeps without a time-out in between
    auto f = group.open(1);
    FabricEvent events[4];
    for (;;) {
      while (const std::size_t n = f->poll(events)) {
        for (std::size_t i = 0; i < n; ++i) {
          if (events[i].kind == Kind::kRequest) f->send_request(kA, events[i].data);
        }
      }
      f->ring_doorbell(kA);
      pollfd fd{f->event_fd(), POLLIN, 0};
      if (f->prepare_to_sleep()) ::poll(&fd, 1, -1);
    }
  });
  REQUIRE(until([&] { return drain(*a), a->connected(kB); }));
  for (int i = 0; i < times<TestType>(5000); ++i) {
    REQUIRE(a->send_request(kB, bytes_of(std::to_string(i))));
    a->ring_doorbell(kB);
    REQUIRE(drain_until(
        *a, [](const Seen& s) { return s.kind == Kind::kRequest; }, 5000));
  }
}

TEMPLATE_TEST_CASE("F14: memory, cells and grants outlive the process; lost memory reads as zeros",
                   "[fabric]", ShmGroup, TcpGroup) {
  Trio<TestType> t;
  CHECK_FALSE(t.b->survived());
  const Key key = t.grant_b_to_a();
  REQUIRE(write_ok(*t.a, kB, key, 8, "kept"));
  t.b->set_cell(1, {{41, 42}});
  CHECK(t.group.open(1) == nullptr);  // a replica has only one process
  t.b.reset();
  SECTION("survived") {
    t.b = t.group.open(1);
    REQUIRE(t.b);
    CHECK(t.b->survived());
    CHECK(log_text(*t.b, 8, 4) == "kept");
    CHECK(t.b->own_cell(1).words[1] == 42);
    CHECK(t.b->permitted(kA) == key);
    std::vector<Seen> seen = drain(*t.a);
    CHECK(std::any_of(seen.begin(), seen.end(),
                      [](const Seen& s) { return s.kind == Kind::kPeerUp && s.peer == kB; }));
    t.a->open_log(kB, key, Token{1});
    CHECK(completion_of(*t.a, Token{1}).ok);
    CHECK(write_ok(*t.a, kB, key, 12, "more"));
    drain(*t.b);
    CHECK(log_text(*t.b, 8, 8) == "keptmore");
  }
  SECTION("lost") {
    t.group.lose_memory(1);
    t.b = t.group.open(1);
    REQUIRE(t.b);
    CHECK_FALSE(t.b->survived());
    CHECK(log_text(*t.b, 8, 4) == std::string(4, '\0'));
    CHECK(t.b->own_cell(1) == consensus::CellValue{});
    CHECK(t.b->permitted(kA) == consensus::kNoKey);
    drain(*t.a);
    t.a->open_log(kB, key, Token{1});
    CHECK_FALSE(completion_of(*t.a, Token{1}).ok);
  }
}

}  // namespace crane::test
