// SPDX-License-Identifier: Apache-2.0
// The steps of a replacement, from any state.
#include "runtime/launcher/ctl/replace.h"

#include <catch2/catch.hpp>

using namespace crane::launcher;
using Json = nlohmann::json;

namespace {

Json members(std::initializer_list<std::pair<int, const char*>> all) {
  Json list = Json::array();
  for (const auto& [replica, role] : all) {
    list.push_back({{"replica", replica}, {"member", role}});
  }
  return list;
}

}  // namespace

TEST_CASE("replace: add, promote, remove, done", "[ctl]") {
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}}), 1, 3, false) == ReplaceStep::kAdd);
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}, {3, "learner"}}), 1, 3, false) ==
        ReplaceStep::kPromote);
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}, {3, "voter"}}), 1, 3, true) ==
        ReplaceStep::kRemove);
  CHECK(next_step(members({{0, "voter"}, {3, "voter"}}), 1, 3, false) == ReplaceStep::kDone);
}

TEST_CASE("replace: a learner is replaced by a voter", "[ctl]") {
  CHECK(next_step(members({{0, "voter"}, {1, "learner"}}), 1, 3, false) == ReplaceStep::kAdd);
}

TEST_CASE("replace: no member leaves before the new one votes, and none is added without need",
          "[ctl]") {
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}, {3, "returning"}}), 1, 3, false) ==
        ReplaceStep::kPromote);
  CHECK(next_step(members({{0, "voter"}}), 1, 3, false) == ReplaceStep::kNoMember);
  CHECK(next_step(members({{0, "voter"}, {3, "learner"}}), 1, 3, false) == ReplaceStep::kNoMember);
}

TEST_CASE("replace: a replica that votes already replaces none, so that no member is missing",
          "[ctl]") {
  const Json three = members({{0, "voter"}, {1, "voter"}, {3, "voter"}});
  CHECK(next_step(three, 1, 3, false) == ReplaceStep::kNotNew);
  CHECK(next_step(members({{0, "voter"}, {1, "returning"}, {3, "voter"}}), 1, 3, false) ==
        ReplaceStep::kNotNew);
  // One more than an odd number: a replacement was interrupted.
  const Json four = members({{0, "voter"}, {1, "returning"}, {2, "voter"}, {3, "voter"}});
  CHECK(next_step(four, 1, 3, false) == ReplaceStep::kRemove);
  CHECK(next_step(members({{0, "voter"}, {1, "learner"}, {3, "voter"}}), 1, 3, false) ==
        ReplaceStep::kRemove);
}
