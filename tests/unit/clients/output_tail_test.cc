// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica can continue at any byte of a connection's output that may not be in the
//         socket.
// METHOD  Random writes and puts, compared with a string that keeps everything.
// CHECKS  TAIL-1, also while put() is ahead of this replica's server and after a recovery.
#include "proxy/replica/clients/output_tail.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace crane::proxy;

namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text(const OutputTail& tail) {
  const auto kept = tail.bytes();
  return {reinterpret_cast<const char*>(kept.data()), kept.size()};
}

}  // namespace

TEST_CASE("bytes that were put are dropped, and the rest has no gap", "[output_tail][TAIL-1]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    OutputTail tail;
    std::string all;
    std::uint64_t put = 0;
    for (int i = 0; i < 60; ++i) {
      if (random() % 2 == 0) {
        const std::string more(random() % 3000, static_cast<char>('a' + i % 26));
        tail.append(all.size(), bytes(more));
        all += more;
      } else {
        // Up to 500 bytes ahead of this server: the leader's server has written them already.
        put += random() % 2000;
        put = std::min<std::uint64_t>(put, all.size() + 500);
        tail.put(put);
      }
      REQUIRE(tail.end() == all.size());
      REQUIRE(tail.from() == put);
      REQUIRE(text(tail) == (put < all.size() ? all.substr(put) : ""));
    }
  }
}

TEST_CASE("the last urgent byte keeps its mark until it is put, and when it is taken back",
          "[output_tail]") {
  OutputTail tail;
  tail.append(0, bytes("abc!"));
  tail.note_urgent();
  CHECK(tail.before_urgent() == 3);
  tail.append(4, bytes("de"));
  CHECK(tail.before_urgent() == 3);
  tail.put(3);
  CHECK(tail.before_urgent() == 0);
  tail.put(4);
  CHECK(tail.before_urgent() == 2);
  tail.take_back(bytes("c!"));
  CHECK(tail.before_urgent() == 1);
  tail.append(6, bytes("?"));
  tail.note_urgent();
  CHECK(tail.before_urgent() == 4);
  tail.forget();
  CHECK(tail.before_urgent() == 0);
  CHECK(tail.size() == 0);
}

TEST_CASE("a replica that recovers keeps the output written after the recovery", "[output_tail]") {
  OutputTail tail(100);
  CHECK(tail.from() == 100);
  CHECK(tail.size() == 0);
  tail.append(90, bytes("0123456789abc"));  // its server writes some bytes again
  CHECK(text(tail) == "abc");
  CHECK(tail.end() == 103);
  tail.put(95);  // put never moves back
  CHECK(tail.from() == 100);
}
