// SPDX-License-Identifier: Apache-2.0
// The limit order book of one symbol: price first, then time.
//
// An order that crosses the best price of the other side trades there at the resting order's price,
// oldest first; its remainder rests. A replaced order keeps its time priority only if its price
// stays and its quantity does not grow.
//
// Threads: one at a time (an Exchange has a lock per book).
// INVARIANT BOOK-1: the best bid is below the best ask.
// INVARIANT BOOK-2: every resting order is in the index once, with an open quantity above 0.
// INVARIANT BOOK-3: quantity is conserved: requested = traded + canceled + open, on each side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

namespace engine {

using Price = std::int64_t;      // in ticks, 1 .. kPriceMax
using Quantity = std::uint32_t;  // in lots
using Account = std::uint32_t;
enum class Side : std::uint8_t { kBuy, kSell };

inline constexpr Price kPriceMax = Price{1} << 40;

constexpr Side other(Side side) { return side == Side::kBuy ? Side::kSell : Side::kBuy; }

// The account's own number of an order; unique while the order is open.
struct OrderId {
  Account account = 0;
  std::uint64_t number = 0;
  bool operator==(const OrderId&) const = default;
};

struct OrderIdHash {
  std::size_t operator()(const OrderId& id) const {
    return (id.number * 0x9e3779b97f4a7c15u) ^ (std::size_t{id.account} << 7);
  }
};

struct Trade {
  std::uint64_t number = 0;  // 1, 2, 3, ... in this book
  OrderId maker;             // the resting order
  OrderId taker;             // the arriving order
  Side taker_side = Side::kBuy;
  Price price = 0;
  Quantity quantity = 0;
  Quantity maker_left = 0;  // open after this trade
  Quantity taker_left = 0;
};

enum class Verdict : std::uint8_t {
  kDone,
  kUnknownOrder,  // not open (any more)
  kKnownOrder,    // this number is open already
  kBadQuantity,   // 0
  kBadPrice,
  kBadSymbol,
  kNotLoggedOn,
};

struct Answer {
  Verdict verdict = Verdict::kDone;
  Quantity left = 0;  // add, replace: open afterwards; cancel: canceled quantity
};

// One side of a book. The digest covers every resting order in its priority.
struct Summary {
  std::uint64_t orders = 0;
  std::uint64_t open = 0;  // the sum of their quantities
  Price best = 0;          // 0: none
  std::uint64_t digest = 0;
  bool operator==(const Summary&) const = default;
};

class Book {
 public:
  // Both append their trades, in order.
  Answer add(OrderId id, Side side, Price price, Quantity quantity, std::vector<Trade>& trades);
  Answer replace(OrderId id, Price price, Quantity quantity, std::vector<Trade>& trades);

  Answer cancel(OrderId id);
  // Cancels all orders of an account; returns the sum of their open quantities.
  std::uint64_t cancel_all(Account account);

  [[nodiscard]] Summary summary(Side side) const;

 private:
  struct Order {
    OrderId id;
    Side side = Side::kBuy;
    Price price = 0;
    Quantity open = 0;
  };
  using Queue = std::list<Order>;  // oldest first; the index points into it
  // The key grows as a price gets worse, so that begin() is the best of either side.
  using Levels = std::map<Price, Queue>;

  static Price key(Side side, Price price) { return side == Side::kBuy ? -price : price; }
  Levels& levels(Side side) { return sides_[static_cast<std::size_t>(side)]; }
  Quantity match(const Order& taker, std::vector<Trade>& trades);
  Answer enter(Order order, std::vector<Trade>& trades);
  void remove(Queue::iterator order);

  Levels sides_[2];
  std::unordered_map<OrderId, Queue::iterator, OrderIdHash> index_;
  std::uint64_t last_trade_ = 0;
};

}  // namespace engine
