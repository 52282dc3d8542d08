// SPDX-License-Identifier: Apache-2.0
// UNIT    runtime/supervise/analysis_place.h
// GOAL    The supervisor requests the change of the member list that is missing, and nothing else.
// CHECKS  PLACE-1 over a life: added, settled, released, removed, added by an operator.
#include "runtime/supervise/analysis_place.h"

#include <catch2/catch.hpp>

using crane::supervise::AnalysisPlace;

namespace {

std::string asked(AnalysisPlace& place, bool is_member, std::int64_t now_ms) {
  const char* const change = place.change(is_member, now_ms);
  return change == nullptr ? "" : change;
}

}  // namespace

TEST_CASE("analysis place: a group without an analysis replica requests nothing",
          "[supervise][PLACE-1]") {
  AnalysisPlace place(false);
  CHECK_FALSE(place.differs(false));
  CHECK(asked(place, false, 10'000).empty());
}

TEST_CASE("analysis place: it is requested until it is in the list, then operators decide",
          "[supervise][PLACE-1]") {
  AnalysisPlace place(true);
  CHECK(asked(place, false, 1'000) == "add");
  CHECK(asked(place, false, 1'000 + AnalysisPlace::kAskAgainMs - 1).empty());
  CHECK(asked(place, false, 1'000 + AnalysisPlace::kAskAgainMs) == "add");
  CHECK(place.listed(true, false));  // to be started
  CHECK_FALSE(place.listed(true, true));
  CHECK(asked(place, true, 9'000).empty());
  // An operator removes it, and it stays removed.
  CHECK_FALSE(place.listed(false, true));
  CHECK(asked(place, false, 19'000).empty());
  // An operator adds it.
  CHECK(place.listed(true, false));
}

TEST_CASE("analysis place: a released replica is removed from the list", "[supervise][PLACE-1]") {
  AnalysisPlace place(true);
  CHECK(asked(place, false, 1'000) == "add");
  REQUIRE(place.listed(true, false));
  place.release();
  CHECK(place.differs(true));
  CHECK_FALSE(place.listed(true, false));  // its removal is under way
  CHECK(asked(place, true, 2'000) == "remove");
  CHECK_FALSE(place.listed(false, false));
  CHECK(asked(place, false, 9'000).empty());
  CHECK(place.listed(true, false));  // an operator wants it
}
