// SPDX-License-Identifier: Apache-2.0
// GOAL    A thread that computes gets a tick point, the point's weight makes slices as long as they
//         should be, and an idle replica costs nothing.
// METHOD  The machine with a server of the test, which provides the looks, and a finder that
//         answers when the test decides.
// CHECKS  SLICES-1, SLICES-2, SLICES-3, SLICES-4; patience, known points, weights, refusals,
//         bounds, warnings.
#include "proxy/replica/check/slices.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace crane;
using namespace crane::replica;
using namespace crane::replica::slices;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSlice = 5 * kMs;
constexpr std::int64_t kFirstFind = 25 * kMs;
constexpr std::int64_t kLookEvery = 10 * kMs;
constexpr std::int64_t kTook = 10 * kMs;  // each search of a thread

TickPoint point_at(std::uint32_t offset, std::uint32_t weight_ps = 1000) {
  return {77, offset, weight_ps, 5, 0};
}

Options sliced(std::vector<TickPoint> known = {}) { return {kSlice, std::move(known), 64}; }

struct Fixture {
  explicit Fixture(Options options = sliced()) : machine(std::move(options)) {
    look.leads = look.serves = true;
  }

  void computes(std::uint16_t slot, std::uint64_t clock) { look.thread = Computing{slot, clock}; }
  std::int64_t step(std::int64_t now_ns) {
    now = now_ns;
    look.points = points;
    send(look);
    return machine.deadline_ns();
  }
  // Looks at every due time until then.
  void run_until(std::int64_t until_ns) {
    while (now < until_ns) step(std::min(now + kMs, until_ns));
  }
  void found(std::optional<TickPoint> point) {
    now += kTook;
    send(Found{point, "the place"});
  }
  // A slice ended at point 0 of the admitted ones, with that point's weight.
  void slice(std::int64_t cpu_ns) {
    ++look.slices;
    look.point = 0;
    look.weight_ps = points[0].weight_ps;
    look.cpu_ns = cpu_ns;
    step(now + kMs);
  }
  void admit(const TickPoint& point) {
    for (TickPoint& p : points) {
      if (p.offset != point.offset) continue;
      p = point;
      return;
    }
    points.push_back(point);
  }

  Slices machine;
  Look look;
  std::vector<TickPoint> points;
  std::int64_t now = 0;
  bool busy = false;  // nothing can be proposed
  std::vector<Find> finds;
  std::vector<TickPoint> proposed;
  std::vector<EarlyPoint> begun;
  int refused = 0;
  std::vector<std::string> warned, informed;

 private:
  void send(const Event& event) {
    machine.step(event, now);
    ActionList list;
    while (machine.take_actions(list)) {
      for (const Action& action : list) {
        std::visit([this](const auto& a) { carry_out(a); }, action);
      }
    }
  }
  void carry_out(const Find& find) { finds.push_back(find); }
  void carry_out(const Propose& proposal) {
    if (!busy) return proposed.push_back(proposal.point);
    ++refused;
    machine.step(NotProposed{proposal.point}, now);
  }
  void carry_out(const BeginAgain& begin) { begun.push_back(begin.early); }
  void carry_out(const LogMessage& message) {
    (message.warns ? warned : informed).push_back(message.text);
  }
};

}  // namespace

TEST_CASE("slices: an idle replica is not looked at", "[slices]") {
  Fixture f;
  CHECK(f.machine.deadline_ns() == kNever);
  CHECK(f.step(0) == kNever);
  f.computes(3, 10);
  CHECK(f.step(kMs) == kMs + kLookEvery);
  f.look.thread.reset();
  CHECK(f.step(2 * kMs) == kNever);
  f.run_until(1000 * kMs);
  CHECK(f.finds.empty());
}

TEST_CASE("slices: without slices, and on a follower, nothing is done", "[slices]") {
  Options options = sliced({point_at(1)});
  bool leads = true;
  SECTION("without slices") { options.slice_ns = 0; }
  SECTION("a follower") { leads = false; }
  Fixture f(options);
  f.look.leads = leads;
  f.points = {point_at(2)};
  f.computes(3, 10);
  for (int i = 0; i < 10; ++i) f.slice(100 * kSlice);
  f.run_until(1000 * kMs);
  CHECK(f.step(1001 * kMs) == kNever);
  CHECK(f.finds.empty());
  CHECK(f.proposed.empty());
}

TEST_CASE("slices: a thread that stays at one clock is searched, at growing intervals",
          "[slices]") {
  Fixture f;
  f.computes(3, 10);
  f.step(0);
  std::int64_t due = kFirstFind;
  for (const std::int64_t apart : {8 * kTook, 16 * kTook, 32 * kTook}) {
    const std::size_t before = f.finds.size();
    f.run_until(due - 1);
    CHECK(f.finds.size() == before);
    f.run_until(due);
    REQUIRE(f.finds.size() == before + 1);
    CHECK(f.finds.back().slot == 3);
    f.found({});
    due = f.now + apart;  // SLICES-3
  }
  SECTION("also at another clock") { f.computes(3, 11); }
  SECTION("and soon again if something was found") {
    f.run_until(due);
    f.found(point_at(1));
    due = f.now + 4 * kTook;
  }
  const std::size_t before = f.finds.size();
  f.run_until(due - 1);
  CHECK(f.finds.size() == before);
  f.run_until(due);
  CHECK(f.finds.size() == before + 1);
}

TEST_CASE("slices: while the server starts a thread has a second", "[slices]") {
  Fixture f;
  f.look.serves = false;
  f.computes(3, 10);
  f.step(0);
  f.run_until(1000 * kMs - 1);
  CHECK(f.finds.empty());
  f.run_until(1000 * kMs);
  CHECK(f.finds.size() == 1);
}

TEST_CASE("slices: another thread or clock gets its own time", "[slices]") {
  Fixture f;
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind - 1);
  SECTION("another clock") { f.computes(3, 11); }
  SECTION("another thread") { f.computes(4, 10); }
  SECTION("no thread for a while") {
    f.look.thread.reset();
    f.step(kFirstFind - 1);
    f.computes(3, 10);
  }
  f.step(kFirstFind);
  f.run_until(2 * kFirstFind - 1);
  CHECK(f.finds.empty());
  f.run_until(2 * kFirstFind);
  CHECK(f.finds.size() == 1);
}

TEST_CASE("slices: a thread gets the time of four slices if slices are long", "[slices]") {
  Fixture f({20 * kMs, {}, 64});
  f.computes(3, 10);
  f.step(0);
  f.run_until(80 * kMs - 1);
  CHECK(f.finds.empty());
  f.run_until(80 * kMs);
  CHECK(f.finds.size() == 1);
}

TEST_CASE("slices: SLICES-1, one thread at a time is searched", "[slices][SLICES-1]") {
  Fixture f;
  f.computes(3, 10);
  f.step(0);
  f.run_until(1000 * kMs);
  CHECK(f.finds.size() == 1);
  f.computes(4, 11);
  f.run_until(2000 * kMs);
  CHECK(f.finds.size() == 1);
  SECTION("answered") { f.found({}); }
  SECTION("answered while another one leads") {
    f.look.leads = false;
    f.step(f.now);
    f.found(point_at(1));
    CHECK(f.proposed.empty());
    f.look.leads = true;
  }
  f.run_until(f.now + 30'000 * kMs);  // the longest interval of SLICES-3
  CHECK(f.finds.size() == 2);
  CHECK(f.finds.back().slot == 4);
}

TEST_CASE("slices: a found point is proposed once", "[slices]") {
  Fixture f;
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind);
  f.found(point_at(1));
  REQUIRE(f.proposed.size() == 1);
  CHECK(f.proposed[0].offset == 1);
  CHECK(f.proposed[0].weight_ps == 1000);
  CHECK(f.informed.size() == 1);
  SECTION("found again before it is admitted") {}
  SECTION("found again after that, with another weight") { f.admit(point_at(1, 500)); }
  f.run_until(4 * kFirstFind);
  REQUIRE(f.finds.size() == 2);
  CHECK(f.finds[0].proposed.empty());
  if (f.points.empty()) {
    REQUIRE(f.finds[1].proposed.size() == 1);
    CHECK(f.finds[1].proposed[0].offset == 1);
  }
  f.found(point_at(1));
  CHECK(f.proposed.size() == 1);
  f.run_until(16 * kFirstFind);
  f.found(point_at(2));
  CHECK(f.proposed.size() == 2);
  CHECK(f.warned.empty());
}

TEST_CASE("slices: known points are proposed as a reign begins, but not again", "[slices]") {
  Fixture f(sliced({point_at(1), point_at(2), point_at(3)}));
  f.admit(point_at(2, 9));
  CHECK(f.step(0) == kNever);
  REQUIRE(f.proposed.size() == 2);
  CHECK(f.proposed[0].offset == 1);
  CHECK(f.proposed[1].offset == 3);
  f.step(kMs);
  CHECK(f.proposed.size() == 2);
  f.admit(point_at(1));
  f.look.leads = false;
  f.step(2 * kMs);
  CHECK(f.proposed.size() == 2);
  f.look.leads = true;
  f.step(3 * kMs);  // its proposal of point 3 may be lost
  REQUIRE(f.proposed.size() == 3);
  CHECK(f.proposed[2].offset == 3);
}

TEST_CASE("slices: a known point that could not be proposed is proposed at the next look",
          "[slices]") {
  Fixture f(sliced({point_at(1), point_at(2)}));
  f.busy = true;
  CHECK(f.step(0) == kLookEvery);
  CHECK(f.refused == 2);
  f.step(kMs);
  CHECK(f.refused == 4);
  f.busy = false;
  f.step(2 * kMs);
  REQUIRE(f.proposed.size() == 2);
  CHECK(f.step(3 * kMs) == kNever);
  CHECK(f.proposed.size() == 2);
}

TEST_CASE("slices: a found point that could not be proposed is proposed when it is found again",
          "[slices]") {
  Fixture f(sliced({point_at(1)}));
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind);
  REQUIRE(f.proposed.size() == 1);
  f.busy = true;
  f.found(point_at(2));
  CHECK(f.refused == 1);
  f.busy = false;
  f.run_until(4 * kFirstFind);
  REQUIRE(f.finds.size() == 2);
  CHECK(f.finds[1].proposed.size() == 1);  // the other one is in flight all the same
  CHECK(f.proposed.size() == 1);
  f.found(point_at(2));
  REQUIRE(f.proposed.size() == 2);
  CHECK(f.proposed[1].offset == 2);
}

TEST_CASE("slices: a weight is corrected by the duration of its slice", "[slices]") {
  Fixture f;
  f.admit(point_at(1, 1000));
  f.step(0);
  SECTION("four times too long") {
    f.slice(4 * kSlice);
    REQUIRE(f.proposed.size() == 1);
    CHECK(f.proposed[0].weight_ps == 4000);
    CHECK(f.proposed[0].offset == 1);
  }
  SECTION("too short") {
    f.slice(kSlice / 4);
    REQUIRE(f.proposed.size() == 1);
    CHECK(f.proposed[0].weight_ps == 250);
  }
  SECTION("by the weight in that slice, not by the current one") {
    f.admit(point_at(1, 3000));
    ++f.look.slices;
    f.look.weight_ps = 1000;
    f.look.cpu_ns = 2 * kSlice;
    f.step(kMs);
    REQUIRE(f.proposed.size() == 1);
    CHECK(f.proposed[0].weight_ps == 2000);
  }
  SECTION("unless it is right by now") {
    f.admit(point_at(1, 2000));
    ++f.look.slices;
    f.look.weight_ps = 1000;
    f.look.cpu_ns = 2 * kSlice;
    f.step(kMs);
    CHECK(f.proposed.empty());
  }
  SECTION("within bounds") {
    f.slice(10'000 * kSlice);
    REQUIRE(f.proposed.size() == 1);
    CHECK(f.proposed[0].weight_ps == 64'000);
    f.admit(point_at(1, 1'000'000'000));
    f.proposed.clear();
    f.look.leads = false;
    f.step(f.now);
    f.look.leads = true;
    f.step(f.now);
    f.slice(64 * kSlice);
    REQUIRE(f.proposed.size() == 1);
    CHECK(f.proposed[0].weight_ps == 2'000'000'000);
    f.admit(f.proposed[0]);
    f.slice(64 * kSlice);
    CHECK(f.proposed.size() == 1);
  }
  SECTION("but never to nothing") {
    f.admit(point_at(1, 3));
    f.slice(1);
    REQUIRE(f.proposed.size() == 1);
    CHECK(f.proposed[0].weight_ps == 1);
    f.admit(f.proposed[0]);
    f.slice(1);
    CHECK(f.proposed.size() == 1);
  }
}

TEST_CASE("slices: a weight that is about right, or without a known slice, stays", "[slices]") {
  Fixture f;
  f.admit(point_at(1));
  f.look.slices = 7;  // from before it led
  f.look.cpu_ns = 100 * kSlice;
  f.look.weight_ps = 1000;
  f.step(0);
  f.step(kMs);
  f.slice(kSlice);
  f.slice(kSlice * 14 / 10);
  f.slice(kSlice * 7 / 10);
  f.slice(0);
  CHECK(f.proposed.empty());
  ++f.look.slices;
  f.look.point = 1;  // does not exist yet
  f.look.cpu_ns = 100 * kSlice;
  f.step(f.now);
  CHECK(f.proposed.empty());
}

TEST_CASE("slices: SLICES-2, the next weight waits until the last one is admitted",
          "[slices][SLICES-2]") {
  Fixture f;
  f.admit(point_at(1));
  f.step(0);
  f.slice(4 * kSlice);
  f.slice(4 * kSlice);
  REQUIRE(f.proposed.size() == 1);
  // A failed proposal of another point changes nothing.
  f.computes(3, 10);
  f.step(f.now);
  f.run_until(f.now + kFirstFind);
  f.busy = true;
  f.found(point_at(2));
  REQUIRE(f.refused == 1);
  f.busy = false;
  for (int i = 0; i < 3; ++i) f.slice(4 * kSlice);
  CHECK(f.proposed.size() == 1);
  f.admit(f.proposed[0]);
  f.slice(2 * kSlice);
  REQUIRE(f.proposed.size() == 2);
  CHECK(f.proposed[1].weight_ps == 8000);
}

TEST_CASE("slices: a weight that could not be proposed is corrected by the next slice",
          "[slices]") {
  Fixture f;
  f.admit(point_at(1));
  f.step(0);
  f.busy = true;
  f.slice(4 * kSlice);
  CHECK(f.refused == 1);
  f.busy = false;
  f.slice(4 * kSlice);
  CHECK(f.proposed.size() == 1);
}

TEST_CASE("slices: a slice in which the thread was searched does not correct the weight",
          "[slices]") {
  Fixture f;
  f.admit(point_at(1));
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind);
  REQUIRE(f.finds.size() == 1);
  SECTION("searched when it ended") {
    f.slice(4 * kSlice);
    CHECK(f.proposed.empty());
  }
  SECTION("searched when it began, or in between") {}
  f.found({});
  f.slice(4 * kSlice);
  CHECK(f.proposed.empty());
  f.slice(4 * kSlice);
  CHECK(f.proposed.size() == 1);
}

TEST_CASE("slices: there are no more points than the limit", "[slices]") {
  Fixture f({kSlice, {point_at(1)}, 2});
  f.admit(point_at(2));
  f.computes(3, 10);
  f.step(0);
  REQUIRE(f.proposed.size() == 1);
  f.run_until(kFirstFind);
  f.found(point_at(3));
  CHECK(f.proposed.size() == 1);
  REQUIRE(f.warned.size() == 1);
  CHECK(f.warned[0].find("the place would be a tick point") == 0);
  Fixture room({kSlice, {point_at(1)}, 3});
  room.admit(point_at(2));
  room.computes(3, 10);
  room.step(0);
  room.run_until(kFirstFind);
  room.found(point_at(3));
  CHECK(room.proposed.size() == 2);
  CHECK(room.warned.empty());
}

TEST_CASE("slices: an admitted point counts once", "[slices]") {
  Fixture f({kSlice, {point_at(1)}, 2});
  f.computes(3, 10);
  f.step(0);
  f.admit(f.proposed.at(0));
  SECTION("also while a weight of it is in flight") {
    f.step(kMs);
    f.slice(4 * kSlice);
    REQUIRE(f.proposed.size() == 2);
    f.proposed.pop_back();
  }
  f.run_until(kFirstFind);
  f.found(point_at(2));
  CHECK(f.proposed.size() == 2);
  CHECK(f.warned.empty());
}

TEST_CASE("slices: an operator is warned of a lasting computation without a point", "[slices]") {
  Fixture f;
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind);
  f.found({});
  CHECK(f.warned.empty());
  CHECK(f.machine.unsliced().where == "the place");
  CHECK(f.machine.unsliced().lasted_ns == kFirstFind + kTook);
  f.run_until(f.now + 8 * kTook);
  f.found({});
  f.run_until(f.now + 16 * kTook);
  REQUIRE(f.finds.size() == 3);
  CHECK(f.informed.size() == 1);  // once, however often it is searched
  SECTION("not yet") {
    f.run_until(1000 * kMs - kTook - 1);
    f.found({});
    CHECK(f.warned.empty());
  }
  SECTION("a second") {
    f.run_until(1000 * kMs - kTook);
    f.found({});
    REQUIRE(f.warned.size() == 1);
    CHECK(f.warned[0].find("slot 3 has computed for 1000 ms at clock 10") == 0);
    CHECK(f.warned[0].find("it is in the place") != std::string::npos);
    f.run_until(f.now + 60'000 * kMs);
    f.found({});
    CHECK(f.warned.size() == 1);
  }
  SECTION("a second of the thread that was searched, even if another one computes now") {
    f.run_until(1000 * kMs - kTook);
    f.computes(4, 11);
    f.step(f.now);
    f.found({});
    REQUIRE(f.warned.size() == 1);
    CHECK(f.warned[0].find("slot 3") == 0);
  }
}

TEST_CASE("slices: all replicas begin again for a computation without end", "[slices][SLICES-4]") {
  Fixture f;
  f.look.may_begin_again = true;
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind);
  REQUIRE(f.finds.size() == 1);
  f.found(point_at(5));
  const std::int64_t endless = 10'000 * kMs;

  SECTION("when it has lasted for long, at its clock") {
    f.run_until(endless - kMs);
    CHECK(f.begun.empty());
    f.run_until(endless);
    REQUIRE(f.begun.size() == 1);
    CHECK(f.begun[0].clock == 10);
    CHECK(f.begun[0].point.offset == 5);
  }
  SECTION("again each time that this could not be proposed") {
    f.run_until(endless + kMs);
    CHECK(f.begun.size() == 2);
  }
  SECTION("later each time") {
    f.look.early_points = 2;
    f.run_until(4 * endless - kMs);
    CHECK(f.begun.empty());
    f.run_until(4 * endless);
    CHECK(f.begun.size() == 1);
  }
  SECTION("not when it ends before, nor for the next one before that is searched") {
    f.run_until(endless - kMs);
    f.computes(3, 11);
    f.run_until(3 * endless);
    CHECK(f.begun.empty());
  }
  SECTION("not when no thread waits") {
    f.look.may_begin_again = false;
    f.run_until(2 * endless);
    CHECK(f.begun.empty());
  }
  SECTION("not when leadership was lost and regained before it is searched") {
    f.look.leads = false;
    f.step(f.now + kMs);
    f.look.leads = true;
    f.run_until(2 * endless);
    CHECK(f.begun.empty());
  }
}

TEST_CASE("slices: no replica begins again for a point that is in effect", "[slices][SLICES-4]") {
  Fixture f;
  f.look.may_begin_again = true;
  f.admit(point_at(5));
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind);
  f.found(point_at(5));
  f.run_until(60'000 * kMs);
  CHECK(f.begun.empty());
}

TEST_CASE("slices: a point that is found when the thread has moved on is not for its clock",
          "[slices][SLICES-4]") {
  Fixture f;
  f.look.may_begin_again = true;
  f.computes(3, 10);
  f.step(0);
  f.run_until(kFirstFind);
  f.computes(3, 12);
  f.step(f.now + kMs);
  f.found(point_at(5));
  f.run_until(60'000 * kMs);
  CHECK(f.begun.empty());
}
