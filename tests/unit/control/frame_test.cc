// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/frame.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

using namespace crane::control;

namespace {

std::vector<std::byte> frame_of(const std::string& text) {
  std::vector<std::byte> bytes;
  put_frame(bytes, text);
  return bytes;
}

}  // namespace

TEST_CASE("a frame is read when it is complete, not before", "[frame]") {
  for (const std::string& text : {std::string(), std::string("x"), std::string(4096, 'y')}) {
    const auto bytes = frame_of(text);
    std::string got = "before";
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      REQUIRE(read_frame(std::span(bytes).first(n), 4096, got) == Framed::kMore);
      REQUIRE(got == "before");
    }
    REQUIRE(read_frame(bytes, 4096, got) == Framed::kWhole);
    CHECK(got == text);
  }
}

TEST_CASE("a frame's size has one form on all machines", "[frame]") {
  const auto bytes = frame_of(std::string(0x0102, 'z'));
  CHECK(bytes[0] == std::byte{0});
  CHECK(bytes[1] == std::byte{0});
  CHECK(bytes[2] == std::byte{1});
  CHECK(bytes[3] == std::byte{2});
}

TEST_CASE("a size above the limit is refused before the text arrives", "[frame][FRAME-1]") {
  const std::vector<std::byte> largest(4, std::byte{0xff});
  std::string got;
  CHECK(read_frame(largest, kLinkAnswerMax, got) == Framed::kTooLong);
  const auto bytes = frame_of(std::string(4097, 'y'));
  CHECK(read_frame(std::span(bytes).first(4), 4096, got) == Framed::kTooLong);
  CHECK(read_frame(std::span(bytes).first(4), 4097, got) == Framed::kMore);
}

TEST_CASE("bytes behind a frame do not belong to it", "[frame]") {
  auto bytes = frame_of("first");
  put_frame(bytes, "second");
  std::string got;
  REQUIRE(read_frame(bytes, 4096, got) == Framed::kWhole);
  CHECK(got == "first");
}

TEST_CASE("no bytes make a reader fail", "[frame]") {
  std::mt19937_64 random(Catch::rngSeed());
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes(random() % 64);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    std::string got;
    if (read_frame(bytes, 32, got) == Framed::kWhole) REQUIRE(got.size() <= 32);
  }
}
