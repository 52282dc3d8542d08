// SPDX-License-Identifier: Apache-2.0
// What client and engine say to each other over TCP: records of a fixed size, little-endian.
//
// A client says kLogon first.  Each request has one answer, and the trades that it made come before
// it; trades of resting orders come whenever somebody makes them.  Of one symbol, an account hears
// everything in the order in which it happened in the book.
#pragma once

#include <bit>
#include <cstdint>

#include "eval/engine/book.h"

namespace engine {

static_assert(std::endian::native == std::endian::little);

enum class Ask : std::uint8_t {
  kLogon = 1,  // order: the account
  kNew,
  kCancel,
  kReplace,    // to this price, and this open quantity
  kCancelAll,  // of this symbol
  kBook,       // what rests on this side
};

struct Request {
  Ask ask = Ask::kLogon;
  Side side = Side::kBuy;
  std::uint16_t symbol = 0;
  Quantity quantity = 0;
  std::uint64_t order = 0;
  Price price = 0;
};
static_assert(sizeof(Request) == 24);

enum class Tell : std::uint8_t {
  kAnswer = 1,  // to the request; `total` of kCancelAll: the quantity taken back
  kTook,        // a trade that the request made
  kMade,        // a trade of a resting order
  kBook,        // answer to kBook: quantity = orders, price = best, total = open, number = digest
};

struct Report {
  Tell tell = Tell::kAnswer;
  Verdict verdict = Verdict::kDone;
  std::uint16_t symbol = 0;
  Side side = Side::kBuy;  // the receiver's
  std::uint8_t unused[3] = {};
  Quantity quantity = 0;  // traded
  Quantity left = 0;
  std::uint64_t order = 0;
  Price price = 0;
  std::uint64_t total = 0;
  std::uint64_t number = 0;  // of the trade
};
static_assert(sizeof(Report) == 48);

}  // namespace engine
