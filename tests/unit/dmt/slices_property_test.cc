// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica that continues from a checkpoint ends each slice where the other replicas end
//         it.
// METHOD  A model of a thread that passes points, and of the code that counts them (trap/). The
//         points are the real ones (dmt/slices.h). Passages, admissions and early points are
//         random. At a random step a second replica starts with a copy of the segment and of the
//         thread's words, as CRIU restores them.
// CHECKS  SLICE-1, SLICE-4: the ends of slices and the weights of points on both replicas.
#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "dmt/slices.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr std::int64_t kSlicePs = 5000;
constexpr std::uint32_t kOffsets = 4;

struct Step {
  enum Kind { kPass, kAdmit, kOperate } kind;
  std::uint32_t offset, weight;
};

rc::Gen<Step> any_step() {
  return rc::gen::build<Step>(
      rc::gen::set(&Step::kind, rc::gen::weightedElement<Step::Kind>(
                                    {{20, Step::kPass}, {2, Step::kAdmit}, {1, Step::kOperate}})),
      rc::gen::set(&Step::offset, rc::gen::inRange<std::uint32_t>(0, kOffsets)),
      rc::gen::set(&Step::weight, rc::gen::inRange<std::uint32_t>(1, 2000)));
}

// A thread of one replica: the word in which its stubs count, and its history.
struct Thread {
  explicit Thread(Layout& of) : w(of) {}

  void operate() {
    ++w.scheduler.clock;
    if (w.early_points.waiting != 0) admit_early_points(w);
  }
  void pass(std::uint32_t offset) {
    const TickPoints& t = w.tick_points;
    for (std::uint32_t i = 0; i < t.used; ++i) {
      if (t.points[i].offset != offset) continue;
      left_ps -= t.points[i].weight_ps;
      if (left_ps >= 0) return;
      left_ps = kSlicePs;
      operate();
      ended.push_back(w.scheduler.clock);
    }
  }
  void take(const Step& step) {
    switch (step.kind) {
      case Step::kPass:
        return pass(step.offset);
      case Step::kAdmit:
        return admit_tick_point(w, {77, step.offset, step.weight, 5, 0});
      case Step::kOperate:
        left_ps = kSlicePs;
        return operate();
    }
  }

  Layout& w;
  std::int64_t left_ps = kSlicePs;
  std::vector<std::uint64_t> ended;  // clocks
};

}  // namespace

TEST_CASE("slices: a count continues from a checkpoint", "[slices][property]") {
  rc::check("slices: a count continues from a checkpoint", [] {
    const auto steps = *rc::gen::container<std::vector<Step>>(200, any_step());
    const auto taken_at = *rc::gen::inRange<std::size_t>(0, steps.size());
    const auto early_clock = *rc::gen::inRange<std::uint64_t>(0, 10);
    World first, second;
    add_early_point(first.w, {{77, 1, 900, 5, 0}, first.w.scheduler.clock + early_clock}, false);
    Thread all(first.w), behind(second.w);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i == taken_at) {
        std::memcpy(&second.w.tick_points, &first.w.tick_points, sizeof(TickPoints));
        std::memcpy(&second.w.early_points, &first.w.early_points, sizeof(EarlyPoints));
        second.w.scheduler.clock = first.w.scheduler.clock;
        behind.left_ps = all.left_ps;
        all.ended.clear();
      }
      all.take(steps[i]);
      if (i >= taken_at) behind.take(steps[i]);
    }
    RC_ASSERT(all.ended == behind.ended);
    RC_ASSERT(all.left_ps == behind.left_ps);
    RC_ASSERT(std::memcmp(&first.w.tick_points, &second.w.tick_points, sizeof(TickPoints)) == 0);
  });
}
