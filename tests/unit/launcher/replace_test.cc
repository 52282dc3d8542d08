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
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}}), 1, 3) == ReplaceStep::kAdd);
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}, {3, "learner"}}), 1, 3) ==
        ReplaceStep::kPromote);
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}, {3, "voter"}}), 1, 3) ==
        ReplaceStep::kRemove);
  CHECK(next_step(members({{0, "voter"}, {3, "voter"}}), 1, 3) == ReplaceStep::kDone);
}

TEST_CASE("replace: a learner is replaced by a voter", "[ctl]") {
  CHECK(next_step(members({{0, "voter"}, {1, "learner"}}), 1, 3) == ReplaceStep::kAdd);
}

TEST_CASE("replace: no member leaves before the new one votes, and none is added without need",
          "[ctl]") {
  CHECK(next_step(members({{0, "voter"}, {1, "voter"}, {3, "returning"}}), 1, 3) ==
        ReplaceStep::kPromote);
  CHECK(next_step(members({{0, "voter"}}), 1, 3) == ReplaceStep::kNoMember);
  CHECK(next_step(members({{0, "voter"}, {3, "learner"}}), 1, 3) == ReplaceStep::kNoMember);
}
