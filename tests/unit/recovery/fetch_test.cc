// SPDX-License-Identifier: Apache-2.0
// How long a replica that needs a checkpoint tries to fetch one.
#include "proxy/host/recovery/fetch.h"

#include <catch2/catch.hpp>

using crane::Code;
using crane::node::FetchDeadline;

namespace {
constexpr std::int64_t kS = 1'000'000'000;
}  // namespace

TEST_CASE("a fetch is tried again for as long as more of it arrives", "[fetch]") {
  FetchDeadline deadline(0);
  std::int64_t at = 0;
  // Longer in total than one without progress.
  for (std::uint64_t bytes = 1; bytes <= 10; ++bytes) {
    REQUIRE(deadline.again(at += 80 * kS, Code::kDamaged, bytes * 1000));
  }
  REQUIRE(deadline.again(at + 89 * kS, Code::kDamaged, 10'000));
  REQUIRE_FALSE(deadline.again(at + 90 * kS, Code::kDamaged, 10'000));
  // Bytes that were discarded arrive again.
  REQUIRE_FALSE(deadline.again(at + 91 * kS, Code::kDamaged, 0));
  REQUIRE(deadline.again(at + 92 * kS, Code::kDamaged, 500));
}

TEST_CASE("others may be unreachable for a while, longer if a part has arrived", "[fetch]") {
  FetchDeadline deadline(0);
  REQUIRE(deadline.again(14 * kS, Code::kPeerFailed, 0));
  REQUIRE(deadline.again(16 * kS, Code::kNotFound, 0));  // another host answered
  REQUIRE(deadline.again(30 * kS, Code::kPeerFailed, 0));
  REQUIRE_FALSE(deadline.again(31 * kS, Code::kPeerFailed, 0));
  REQUIRE(deadline.again(31 * kS, Code::kPeerFailed, 1));
  REQUIRE(deadline.again(120 * kS, Code::kPeerFailed, 1));
  REQUIRE_FALSE(deadline.again(121 * kS, Code::kPeerFailed, 1));
}

TEST_CASE("waiting does not help against a full disk", "[fetch]") {
  FetchDeadline deadline(0);
  REQUIRE_FALSE(deadline.again(1, Code::kFull, 1));
}
