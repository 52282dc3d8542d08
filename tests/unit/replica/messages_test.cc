// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica reads what another one sent, and nothing else.
// METHOD  Each row of the table is encoded and read; bytes that are not of the table are rejected.
// CHECKS  MESSAGE-1.
#include "proxy/replica/messages.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

using namespace crane;
using namespace crane::replica;

namespace {

// Encodes and reads: the type is the same, and so is each byte.
template <typename M>
void check_row(std::mt19937& random) {
  M sent;
  for (std::size_t i = 0; i < sizeof sent; ++i) {
    reinterpret_cast<unsigned char*>(&sent)[i] = static_cast<unsigned char>(random());
  }
  const auto framed = message_of(sent);
  const auto read = read_message(framed.bytes());
  REQUIRE(read);
  REQUIRE(std::holds_alternative<M>(*read));
  CHECK(std::memcmp(&std::get<M>(*read), &sent, sizeof sent) == 0);

  const auto whole = framed.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(read_message(whole.first(size)));
  std::vector<std::byte> longer(whole.begin(), whole.end());
  longer.push_back(std::byte{0});
  CHECK_FALSE(read_message(longer));
  for (const std::size_t at : {0, 1, 2, 3}) {  // type, version, size
    std::vector<std::byte> other(whole.begin(), whole.end());
    other[at] ^= std::byte{0x55};
    CHECK_FALSE(read_message(other));
  }
}

template <typename... M>
void check_all(std::mt19937& random, const std::variant<M...>*) {
  (check_row<M>(random), ...);
}

}  // namespace

TEST_CASE("messages: each is read as it was sent, or not at all", "[messages][MESSAGE-1]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  check_all(random, static_cast<const Message*>(nullptr));
}

TEST_CASE("messages: a row's length is not another row's", "[messages][MESSAGE-1]") {
  auto note = message_of(CheckpointNote{});
  static_assert(sizeof(CheckpointNote) == sizeof(ServerPlaceMessage));
  CHECK(std::holds_alternative<CheckpointNote>(*read_message(note.bytes())));
  note.head.type = MessageRow<ServerPlaceMessage>::kType;
  CHECK(std::holds_alternative<ServerPlaceMessage>(*read_message(note.bytes())));
  note.head.type = MessageRow<PeerNote>::kType;
  CHECK_FALSE(read_message(note.bytes()));
}
