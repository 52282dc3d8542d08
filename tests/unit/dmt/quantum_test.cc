// SPDX-License-Identifier: Apache-2.0
// GOAL    A thread has its turns in quanta, whose lengths the clock decides.
// METHOD  Real threads as slots; the test is the node.
// CHECKS  Rules D9 and 23.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

TEST_CASE("a quantum of q turns is taken without interruption", "[turns]") {
  std::vector<int> expected;
  for (int i = 0; i < 5; ++i) {
    for (int t = 0; t < 3; ++t) expected.insert(expected.end(), 4, t);
  }
  // The last quantum of a thread ends with the thread.
  CHECK(rotation({.quantum = 4}, 3, 20) == expected);
}

TEST_CASE("quanta differ in length by up to 1/32", "[turns]") {
  constexpr std::uint32_t kQuantum = 3 * kQuantumJitter;
  const std::vector<int> trace = rotation({.quantum = kQuantum}, 2, 4000);
  std::vector<std::size_t> lengths;
  // The turns that the last thread takes alone are no quantum.
  const auto shared = static_cast<std::size_t>(
      std::distance(std::find(trace.rbegin(), trace.rend(), 1 - trace.back()), trace.rend()));
  for (std::size_t i = 0, begin = 0; i < shared; ++i) {
    if (trace[i] == trace[begin]) continue;
    lengths.push_back(i - begin);
    begin = i;
  }
  REQUIRE(lengths.size() > 10);
  lengths.erase(lengths.begin());  // the quantum of the thread that began before the other one
  CHECK(std::all_of(lengths.begin(), lengths.end(), [](std::size_t n) {
    return n >= kQuantum && n <= kQuantum + kQuantum / kQuantumJitter;
  }));
  CHECK(std::count(lengths.begin(), lengths.end(), lengths[0]) <
        static_cast<std::ptrdiff_t>(lengths.size()));
}
