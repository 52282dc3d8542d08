// SPDX-License-Identifier: Apache-2.0
// The protocol between client and engine over TCP: records of a fixed size, little-endian.
//
// A client sends kLogon first. Each request has one answer, and the trades that it made come before
// the answer; trades of resting orders come when another client causes them. For each symbol, an
// account gets all records in the order of the book.
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
  kBook,       // resting orders on this side
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

enum class ReportKind : std::uint8_t {
  kAnswer = 1,  // to the request; `total` of kCancelAll: the canceled quantity
  kTook,        // a trade that the request made
  kMade,        // a trade of a resting order
  kBook,        // answer to kBook: quantity = orders, price = best, total = open, number = digest
};

struct Report {
  ReportKind kind = ReportKind::kAnswer;
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
