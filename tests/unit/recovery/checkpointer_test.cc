// SPDX-License-Identifier: Apache-2.0
// The state machine of a checkpoint: when the log is held, and every exit.
//
// CHECKS  TAKE-1, TAKE-2.
// METHOD  Actions are counted, and answered as the test decides.
#include "proxy/replica/recovery/checkpointer.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <variant>

using namespace crane;
using namespace crane::replica;
using State = Checkpointer::State;

namespace {

constexpr std::int64_t kMs = 1'000'000;

// Carries out actions at once, and returns their results to the machine.
struct Fixture {
  bool admitted = true;
  std::string blocker = "slot 3 computes";
  std::string no_prepare, no_dump, no_publish;  // why these cannot begin; "": they can
  std::uint64_t held_until = 0;                 // the server can slide to entries up to this one
  std::uint64_t at = 7;
  int prepares = 0, dumps = 0, releases = 0, publishes = 0, discards = 0;
  std::int64_t now = 0;
  Checkpointer c;
  ActionList out;

  void asked(std::int64_t ns, Index entry) {
    now = ns;
    c.asked(now, entry, out);
    carry_out();
  }
  void prepared(std::int64_t ns) {
    now = ns;
    c.prepared(now, Index{at});
  }
  std::int64_t step(std::int64_t ns, bool leads_others) {
    now = ns;
    c.step(leads_others, out);
    carry_out();
    return c.due_ns();
  }
  void dumped(std::int64_t ns, const std::string& why_not) {
    now = ns;
    c.dumped(now, why_not, out);
    carry_out();
  }
  void published(std::int64_t ns, const std::string& why_not) {
    now = ns;
    c.published(now, why_not, out);
    carry_out();
  }
  void refuse(Index entry, const std::string& why) {
    c.refuse(entry, why, out);
    carry_out();
  }
  // Acts as if CRIU had been started at once.
  void hold(std::int64_t ns, Index entry) {
    asked(ns, entry);
    REQUIRE(c.state() == State::kPreparing);
    REQUIRE_FALSE(c.holds());
    prepared(ns);
  }

 private:
  void carry_out() {
    while (!out.empty()) {
      for (const Action& action : std::exchange(out, {})) {
        std::visit([this](const auto& a) { on(a); }, action);
      }
    }
  }
  void on(const Prepare&) {
    ++prepares;
    if (!no_prepare.empty()) c.dumped(now, no_prepare, out);
  }
  void on(const Look&) { c.looked(now, {admitted, blocker}, out); }
  void on(const Slide&) { c.slid(at < held_until ? Index{++at} : Index{0}); }
  void on(const Dump&) {
    REQUIRE(blocker.empty());  // TAKE-2
    ++dumps;
    if (!no_dump.empty()) c.dumped(now, no_dump, out);
  }
  void on(const ReleaseLog&) { ++releases; }
  void on(const Pack&) {
    ++publishes;
    if (!no_publish.empty()) c.published(now, no_publish, out);
  }
  void on(const Discard&) { ++discards; }
  void on(const LogMessage&) {}
  template <typename Other>
  void on(const Other&) {
    FAIL("no action of this machine");
  }
};

}  // namespace

TEST_CASE("checkpoint: the log is held from prepared() until the dump exists", "[TAKE-1]") {
  Fixture f;
  f.asked(-50 * kMs, Index{7});
  REQUIRE(f.prepares == 1);
  REQUIRE_FALSE(f.c.holds());
  REQUIRE(f.step(-20 * kMs, false) == kNever);
  f.prepared(0);
  REQUIRE(f.c.holds());
  REQUIRE(f.step(1 * kMs, false) != kNever);
  f.blocker.clear();
  REQUIRE(f.step(2 * kMs, false) == kNever);
  REQUIRE(f.c.holds());
  REQUIRE(f.dumps == 1);
  f.dumped(90 * kMs, "");
  REQUIRE_FALSE(f.c.holds());
  REQUIRE(f.releases == 1);
  REQUIRE(f.publishes == 1);
  f.published(200 * kMs, "");
  REQUIRE(f.c.state() == State::kIdle);
  REQUIRE(f.releases == 1);
  REQUIRE(f.discards == 0);
  REQUIRE(f.c.status().taken == 1);
  REQUIRE(f.c.status().last == Index{7});
  REQUIRE(f.c.status().prepare_ns == 50 * kMs);
  REQUIRE(f.c.status().rest_ns == 1 * kMs);
  REQUIRE(f.c.status().held_ns == 88 * kMs);
  REQUIRE(f.c.status().pack_ns == 110 * kMs);
}

TEST_CASE("checkpoint: it belongs to the last entry that the server received", "[TAKE-1]") {
  Fixture f;
  f.asked(0, Index{7});
  f.at = 30;  // the log continued
  f.blocker.clear();
  f.prepared(1 * kMs);
  REQUIRE(f.c.at() == Index{30});
  REQUIRE(f.step(1 * kMs, false) == kNever);
  f.dumped(2 * kMs, "");
  f.published(3 * kMs, "");
  REQUIRE(f.c.status().last == Index{30});
}

TEST_CASE("checkpoint: if it is given up before anything is held, nothing is released",
          "[TAKE-1]") {
  Fixture f;
  SECTION("it cannot be prepared") {
    f.no_prepare = "no CRIU";
    f.asked(0, Index{7});
    REQUIRE(f.c.status().why == "no CRIU");
  }
  SECTION("preparing fails") {
    f.asked(0, Index{7});
    f.dumped(1, "CRIU was killed");
    REQUIRE(f.c.status().why == "CRIU was killed");
  }
  REQUIRE(f.c.state() == State::kIdle);
  REQUIRE(f.releases == 0);
  REQUIRE(f.discards == 1);
  f.prepared(2);  // a late result
  REQUIRE_FALSE(f.c.holds());
  f.no_prepare.clear();
  f.at = 8;
  f.hold(3, Index{8});
}

TEST_CASE("checkpoint: a server that is far behind is waited for", "[TAKE-1]") {
  Fixture f;
  f.admitted = false;
  f.blocker.clear();
  f.hold(0, Index{7});
  for (std::int64_t now = 0; now < 60'000 * kMs; now += 100 * kMs) {
    REQUIRE(f.step(now, false) != kNever);
  }
  REQUIRE(f.dumps == 0);
  f.admitted = true;
  REQUIRE(f.step(60'001 * kMs, false) == kNever);
  REQUIRE(f.dumps == 1);
}

TEST_CASE("checkpoint: a place where the server cannot stop is passed", "[TAKE-1]") {
  Fixture f;
  f.held_until = 9;
  f.hold(0, Index{7});
  for (std::int64_t now = 0; now < 1000 * kMs; now += 1 * kMs) {
    REQUIRE(f.step(now, false) != kNever);
  }
  REQUIRE(f.at == 9);
  REQUIRE(f.c.at() == Index{9});
  REQUIRE(f.c.holds());
  f.blocker.clear();
  REQUIRE(f.step(1001 * kMs, false) == kNever);
  f.dumped(1002 * kMs, "");
  f.published(1003 * kMs, "");
  REQUIRE(f.c.status().last == Index{9});
}

TEST_CASE("checkpoint: a place is passed only when the server had time, and its entry is admitted",
          "[TAKE-1]") {
  Fixture f;
  f.held_until = 9;
  f.hold(0, Index{7});
  REQUIRE(f.step(0, false) != kNever);
  REQUIRE(f.step(5 * kMs, false) != kNever);
  REQUIRE(f.at == 7);  // it may still become quiescent at this entry
  REQUIRE(f.step(20 * kMs, false) != kNever);
  REQUIRE(f.at == 8);
  f.admitted = false;
  f.blocker.clear();  // after the previous entry: not where it must be dumped yet
  REQUIRE(f.step(21 * kMs, false) != kNever);
  REQUIRE(f.dumps == 0);
  f.admitted = true;
  REQUIRE(f.step(22 * kMs, false) == kNever);
  REQUIRE(f.dumps == 1);
}

TEST_CASE("checkpoint: the time to become quiescent counts from this checkpoint's first place",
          "[TAKE-1]") {
  Fixture f;
  f.held_until = 1'000'000;
  for (const std::uint64_t entry : {7, 2'000'000}) {  // nothing is held after the second
    f.at = entry;
    f.admitted = false;
    const std::int64_t begin = entry == 7 ? 0 : 60'000 * kMs;
    f.hold(begin, Index{entry});
    f.blocker.clear();
    REQUIRE(f.step(begin, false) != kNever);  // each waits for its own admission
    f.admitted = true;
    f.blocker = "slot 3 computes";
    std::int64_t now = begin;
    for (std::int64_t next = begin; next != kNever; next = f.step(now, false)) {
      now = next;
      REQUIRE(now < begin + 60'000 * kMs);
    }
    REQUIRE(now >= begin + 1'000 * kMs);
    REQUIRE(f.c.status().why.find("slot 3 computes") != std::string::npos);
  }
  REQUIRE(f.dumps == 0);
  REQUIRE(f.c.status().failed == 2);
}

TEST_CASE("checkpoint: every exit releases the log once", "[TAKE-1]") {
  Fixture f;
  f.hold(0, Index{7});
  SECTION("not quiescent in time") {
    std::int64_t now = 0;
    for (std::int64_t next = 0; next != kNever; now = next) {
      REQUIRE(now < 60'000 * kMs);
      next = f.step(now, false);
    }
    REQUIRE(f.dumps == 0);
    REQUIRE(f.c.status().why.find("slot 3 computes") != std::string::npos);
  }
  SECTION("this replica becomes the leader") {
    REQUIRE(f.step(1, true) == kNever);
    REQUIRE(f.c.status().why == "this replica leads now");
  }
  SECTION("what was prepared is gone before the server is quiescent") {
    f.dumped(1, "CRIU was killed");
    REQUIRE(f.dumps == 0);
    REQUIRE(f.c.status().why == "CRIU was killed");
  }
  SECTION("the dump cannot begin") {
    f.blocker.clear();
    f.no_dump = "no CRIU";
    REQUIRE(f.step(1, false) == kNever);
    REQUIRE(f.c.status().why == "no CRIU");
  }
  SECTION("the dump is refused") {
    f.blocker.clear();
    REQUIRE(f.step(1, false) == kNever);
    f.dumped(2, "io_uring");
    REQUIRE(f.publishes == 0);
    REQUIRE(f.c.status().why == "io_uring");
  }
  SECTION("it cannot be packed") {
    f.blocker.clear();
    REQUIRE(f.step(1, false) == kNever);
    f.no_publish = "the disk is full";
    f.dumped(2, "");
    REQUIRE(f.c.status().why == "the disk is full");
  }
  SECTION("packing fails") {
    f.blocker.clear();
    REQUIRE(f.step(1, false) == kNever);
    f.dumped(2, "");
    f.published(3, "the disk is full");
  }
  REQUIRE(f.c.state() == State::kIdle);
  REQUIRE(f.releases == 1);
  REQUIRE(f.discards == 1);
  REQUIRE(f.c.status().taken == 0);
  REQUIRE(f.c.status().failed == 1);
  REQUIRE(f.c.status().gave_up == Index{7});
  f.at = 9;
  f.hold(10, Index{9});  // the next one is not affected
}

TEST_CASE("checkpoint: a second one is not begun while one is in progress", "[TAKE-1]") {
  Fixture f;
  f.hold(0, Index{7});
  f.blocker.clear();
  (void)f.step(1, false);
  f.dumped(2, "");
  f.asked(3, Index{8});
  REQUIRE(f.prepares == 1);
  REQUIRE(f.c.status().why == "the previous checkpoint was not finished");
  REQUIRE(f.c.status().busy);
  REQUIRE(f.c.status().under_way == Index{7});
  REQUIRE_FALSE(f.c.holds());
  REQUIRE(f.releases == 1);
  f.published(4, "");
  REQUIRE(f.c.status().last == Index{7});
  REQUIRE(f.c.status().under_way == Index{0});
  f.refuse(Index{9}, "why not");  // for good
  REQUIRE_FALSE(f.c.status().busy);
}

TEST_CASE("checkpoint: a refused one holds nothing and is reported") {
  Fixture f;
  f.refuse(Index{7}, "why not");
  REQUIRE_FALSE(f.c.holds());
  REQUIRE(f.releases == 0);
  REQUIRE(f.discards == 0);
  REQUIRE(f.c.status().gave_up == Index{7});
  REQUIRE(f.c.status().why == "why not");
  f.asked(10, Index{9});
  REQUIRE(f.c.state() == Checkpointer::State::kPreparing);
}
