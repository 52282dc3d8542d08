// SPDX-License-Identifier: Apache-2.0
#include "eval/engine/book.h"

#include <algorithm>
#include <cassert>

namespace engine {
namespace {

Verdict check_limits(Price price, Quantity quantity) {
  if (quantity == 0) return Verdict::kBadQuantity;
  return price < 1 || price > kPriceMax ? Verdict::kBadPrice : Verdict::kDone;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}

}  // namespace

Answer Book::add(OrderId id, Side side, Price price, Quantity quantity,
                 std::vector<Trade>& trades) {
  const Verdict verdict = check_limits(price, quantity);
  if (verdict != Verdict::kDone) return {.verdict = verdict};
  if (index_.contains(id)) return {.verdict = Verdict::kKnownOrder};
  return enter({.id = id, .side = side, .price = price, .open = quantity}, trades);
}

Answer Book::replace(OrderId id, Price price, Quantity quantity, std::vector<Trade>& trades) {
  const auto found = index_.find(id);
  if (found == index_.end()) return {.verdict = Verdict::kUnknownOrder};
  const Verdict verdict = check_limits(price, quantity);
  if (verdict != Verdict::kDone) return {.verdict = verdict};
  Order& order = *found->second;
  if (price == order.price && quantity <= order.open) {
    order.open = quantity;
    return {.left = quantity};
  }
  const Side side = order.side;
  remove(found->second);
  return enter({.id = id, .side = side, .price = price, .open = quantity}, trades);
}

Answer Book::cancel(OrderId id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return {.verdict = Verdict::kUnknownOrder};
  const Quantity open = found->second->open;
  remove(found->second);
  return {.left = open};
}

std::uint64_t Book::cancel_all(Account account) {
  std::uint64_t open = 0;
  for (Levels& side : sides_) {
    for (auto& [unused, queue] : side) {
      std::erase_if(queue, [&](const Order& order) {
        if (order.id.account != account) return false;
        open += order.open;
        index_.erase(order.id);
        return true;
      });
    }
    std::erase_if(side, [](const auto& level) { return level.second.empty(); });
  }
  return open;
}

Summary Book::summary(Side side) const {
  const Levels& chosen = sides_[static_cast<std::size_t>(side)];
  Summary sum;
  if (!chosen.empty()) sum.best = chosen.begin()->second.front().price;
  for (const auto& [unused, queue] : chosen) {
    for (const Order& order : queue) {
      ++sum.orders;
      sum.open += order.open;
      for (const std::uint64_t word :
           {std::uint64_t{order.id.account}, order.id.number,
            static_cast<std::uint64_t>(order.price), std::uint64_t{order.open}}) {
        sum.digest = mix(sum.digest, word);
      }
    }
  }
  return sum;
}

// Trades `taker` against the other side while they cross; returns the remaining quantity.
Quantity Book::match(const Order& taker, std::vector<Trade>& trades) {
  Levels& against = levels(other(taker.side));
  const Price limit = key(other(taker.side), taker.price);
  Quantity left = taker.open;
  while (left > 0 && !against.empty() && against.begin()->first <= limit) {
    Order& maker = against.begin()->second.front();
    const Quantity quantity = std::min(left, maker.open);
    left -= quantity;
    maker.open -= quantity;
    trades.push_back({.number = ++last_trade_,
                      .maker = maker.id,
                      .taker = taker.id,
                      .taker_side = taker.side,
                      .price = maker.price,
                      .quantity = quantity,
                      .maker_left = maker.open,
                      .taker_left = left});
    if (maker.open == 0) remove(against.begin()->second.begin());
  }
  return left;
}

Answer Book::enter(Order order, std::vector<Trade>& trades) {
  order.open = match(order, trades);
  if (order.open > 0) {
    Queue& queue = levels(order.side)[key(order.side, order.price)];
    index_[order.id] = queue.insert(queue.end(), order);
    const Levels& against = levels(other(order.side));
    // BOOK-1: orders that still cross would have traded.
    assert(against.empty() || against.begin()->first > key(other(order.side), order.price));
  }
  return {.left = order.open};
}

void Book::remove(Queue::iterator order) {
  index_.erase(order->id);
  Levels& side = levels(order->side);
  const auto level = side.find(key(order->side, order->price));
  level->second.erase(order);
  if (level->second.empty()) side.erase(level);
}

}  // namespace engine
