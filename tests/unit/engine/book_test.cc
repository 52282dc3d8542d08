// SPDX-License-Identifier: Apache-2.0
// GOAL    The order book trades at the best price, oldest order first, and conserves quantity.
// METHOD  Hand-written cases for each rule. Random requests, which a plain list also executes by
//         searching for every trade.
// CHECKS  Trades, answers and resting orders equal those of the plain book; BOOK-1; BOOK-3.
// REPLAY  RC_PARAMS, which a failure prints
#include "eval/engine/book.h"

#include <algorithm>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace {

using namespace engine;
using Trades = std::vector<Trade>;

OrderId id(Account account, std::uint64_t number = 1) { return {account, number}; }

// maker account, price, quantity
using Brief = std::tuple<Account, Price, Quantity>;
std::vector<Brief> brief(const Trades& trades) {
  std::vector<Brief> reports;
  for (const Trade& t : trades) reports.emplace_back(t.maker.account, t.price, t.quantity);
  return reports;
}

TEST_CASE("An order that crosses no other order rests") {
  Book book;
  Trades trades;
  CHECK(book.add(id(1), Side::kBuy, 99, 10, trades).left == 10);
  CHECK(book.add(id(2), Side::kSell, 100, 5, trades).left == 5);
  CHECK(trades.empty());
  CHECK(book.summary(Side::kBuy).best == 99);
  CHECK(book.summary(Side::kSell).best == 100);
  CHECK(book.summary(Side::kBuy).open == 10);
}

TEST_CASE("The best price trades first, then the oldest, at the resting price") {
  Book book;
  Trades trades;
  book.add(id(1), Side::kSell, 101, 10, trades);
  book.add(id(2), Side::kSell, 100, 10, trades);
  book.add(id(3), Side::kSell, 100, 10, trades);
  book.add(id(4), Side::kSell, 103, 10, trades);
  const Answer answer = book.add(id(9), Side::kBuy, 102, 27, trades);
  CHECK(answer.left == 0);
  CHECK(brief(trades) == std::vector<Brief>{{2, 100, 10}, {3, 100, 10}, {1, 101, 7}});
  CHECK(trades[0].number == 1);
  CHECK(trades[2].number == 3);
  CHECK(trades[1].taker_left == 7);
  CHECK(trades[2].maker_left == 3);
  CHECK(trades[0].taker_side == Side::kBuy);
  CHECK(book.summary(Side::kSell).orders == 2);
}

TEST_CASE("A sell order trades with the highest bid first") {
  Book book;
  Trades trades;
  book.add(id(1), Side::kBuy, 98, 4, trades);
  book.add(id(2), Side::kBuy, 99, 4, trades);
  CHECK(book.add(id(3), Side::kSell, 97, 6, trades).left == 0);
  CHECK(brief(trades) == std::vector<Brief>{{2, 99, 4}, {1, 98, 2}});
}

TEST_CASE("The rest of a partly filled order rests at its own price") {
  Book book;
  Trades trades;
  book.add(id(1), Side::kSell, 100, 3, trades);
  CHECK(book.add(id(2), Side::kBuy, 105, 10, trades).left == 7);
  CHECK(book.summary(Side::kBuy).best == 105);
  CHECK(book.summary(Side::kSell) == Summary{});
  trades.clear();
  book.add(id(3), Side::kSell, 104, 2, trades);
  CHECK(brief(trades) == std::vector<Brief>{{2, 105, 2}});
}

TEST_CASE("A canceled order no longer trades") {
  Book book;
  Trades trades;
  book.add(id(1), Side::kSell, 100, 3, trades);
  book.add(id(2), Side::kSell, 100, 4, trades);
  CHECK(book.cancel(id(1)).left == 3);
  CHECK(book.cancel(id(1)).verdict == Verdict::kUnknownOrder);
  book.add(id(3), Side::kBuy, 100, 10, trades);
  CHECK(brief(trades) == std::vector<Brief>{{2, 100, 4}});
  CHECK(book.cancel(id(2)).verdict == Verdict::kUnknownOrder);
}

TEST_CASE("A smaller quantity at the same price keeps the order's time priority") {
  Book book;
  Trades trades;
  book.add(id(1), Side::kSell, 100, 5, trades);
  book.add(id(2), Side::kSell, 100, 5, trades);
  CHECK(book.replace(id(1), 100, 2, trades).left == 2);
  book.add(id(3), Side::kBuy, 100, 3, trades);
  CHECK(brief(trades) == std::vector<Brief>{{1, 100, 2}, {2, 100, 1}});
}

TEST_CASE("A larger quantity or another price moves the order to the end") {
  for (const bool greater : {true, false}) {
    Book book;
    Trades trades;
    book.add(id(1), Side::kSell, 100, 5, trades);
    book.add(id(2), Side::kSell, 100, 5, trades);
    if (greater) {
      book.replace(id(1), 100, 6, trades);
    } else {
      book.replace(id(1), 101, 5, trades);
      book.replace(id(1), 100, 5, trades);
    }
    book.add(id(3), Side::kBuy, 100, 6, trades);
    CHECK(brief(trades) == std::vector<Brief>{{2, 100, 5}, {1, 100, 1}});
  }
}

TEST_CASE("A replacement that crosses another order trades at once") {
  Book book;
  Trades trades;
  book.add(id(1), Side::kSell, 105, 5, trades);
  book.add(id(2), Side::kBuy, 100, 5, trades);
  CHECK(book.replace(id(2), 105, 8, trades).left == 3);
  CHECK(brief(trades) == std::vector<Brief>{{1, 105, 5}});
  CHECK(book.replace(id(1), 1, 1, trades).verdict == Verdict::kUnknownOrder);
}

TEST_CASE("Invalid requests are refused and change nothing") {
  Book book;
  Trades trades;
  book.add(id(1), Side::kBuy, 100, 5, trades);
  const Summary before = book.summary(Side::kBuy);
  CHECK(book.add(id(1), Side::kBuy, 100, 5, trades).verdict == Verdict::kKnownOrder);
  CHECK(book.add(id(2), Side::kBuy, 100, 0, trades).verdict == Verdict::kBadQuantity);
  CHECK(book.add(id(2), Side::kBuy, 0, 5, trades).verdict == Verdict::kBadPrice);
  CHECK(book.add(id(2), Side::kBuy, kPriceMax + 1, 5, trades).verdict == Verdict::kBadPrice);
  CHECK(book.replace(id(1), -1, 5, trades).verdict == Verdict::kBadPrice);
  CHECK(book.replace(id(1), 100, 0, trades).verdict == Verdict::kBadQuantity);
  CHECK(book.summary(Side::kBuy) == before);
  CHECK(trades.empty());
}

TEST_CASE("cancel_all() cancels all orders of the account and no others") {
  Book book;
  Trades trades;
  book.add(id(1, 1), Side::kBuy, 90, 5, trades);
  book.add(id(1, 2), Side::kBuy, 91, 6, trades);
  book.add(id(2, 1), Side::kBuy, 91, 7, trades);
  book.add(id(1, 3), Side::kSell, 99, 8, trades);
  CHECK(book.cancel_all(1) == 19);
  CHECK(book.cancel_all(1) == 0);
  CHECK(book.summary(Side::kBuy).open == 7);
  CHECK(book.summary(Side::kSell) == Summary{});
  CHECK(book.cancel(id(1, 2)).verdict == Verdict::kUnknownOrder);
  CHECK(book.add(id(1, 1), Side::kBuy, 90, 5, trades).verdict == Verdict::kDone);
}

TEST_CASE("The digest depends on priority, price and quantity") {
  const auto digest = [](std::vector<std::tuple<Account, Price, Quantity>> orders) {
    Book book;
    Trades trades;
    for (const auto& [a, p, q] : orders) book.add(id(a), Side::kBuy, p, q, trades);
    return book.summary(Side::kBuy).digest;
  };
  CHECK(digest({{1, 5, 5}, {2, 5, 5}}) != digest({{2, 5, 5}, {1, 5, 5}}));
  CHECK(digest({{1, 5, 5}}) != digest({{1, 6, 5}}));
  CHECK(digest({{1, 5, 5}}) != digest({{1, 5, 6}}));
  CHECK(digest({{1, 5, 5}, {2, 4, 5}}) == digest({{2, 4, 5}, {1, 5, 5}}));
}

// The rules of a book, on a list in order of arrival that is searched for every trade.
struct PlainBook {
  struct Order {
    OrderId id;
    Side side;
    Price price;
    Quantity open;
  };
  std::vector<Order> orders;

  auto find(OrderId wanted) {
    return std::find_if(orders.begin(), orders.end(), [&](auto& o) { return o.id == wanted; });
  }
  Quantity enter(Order order, Trades& trades) {
    while (order.open > 0) {
      auto best = orders.end();
      for (auto o = orders.begin(); o != orders.end(); ++o) {
        const bool buys = order.side == Side::kBuy;
        if (o->side == order.side) continue;
        if (buys ? o->price > order.price : o->price < order.price) continue;
        if (best == orders.end() || (buys ? o->price < best->price : o->price > best->price)) {
          best = o;
        }
      }
      if (best == orders.end()) break;
      const Quantity quantity = std::min(order.open, best->open);
      order.open -= quantity;
      best->open -= quantity;
      trades.push_back({.maker = best->id,
                        .taker = order.id,
                        .taker_side = order.side,
                        .price = best->price,
                        .quantity = quantity,
                        .maker_left = best->open,
                        .taker_left = order.open});
      if (best->open == 0) orders.erase(best);
    }
    if (order.open > 0) orders.push_back(order);
    return order.open;
  }
  Answer replace(OrderId wanted, Price price, Quantity quantity, Trades& trades) {
    const auto found = find(wanted);
    if (found == orders.end()) return {.verdict = Verdict::kUnknownOrder};
    if (price == found->price && quantity <= found->open) {
      found->open = quantity;
      return {.left = quantity};
    }
    const Side side = found->side;
    orders.erase(found);
    return {.left = enter({wanted, side, price, quantity}, trades)};
  }
  Summary summary(Side side) const {
    Book fresh;  // no order of one side crosses another
    Trades none;
    for (const Order& o : orders) {
      if (o.side == side) fresh.add(o.id, side, o.price, o.open, none);
    }
    return fresh.summary(side);
  }
};

void same_trades(const Trades& got, const Trades& wanted) {
  RC_ASSERT(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    RC_ASSERT(got[i].maker == wanted[i].maker);
    RC_ASSERT(got[i].taker == wanted[i].taker);
    RC_ASSERT(got[i].taker_side == wanted[i].taker_side);
    RC_ASSERT(got[i].price == wanted[i].price);
    RC_ASSERT(got[i].quantity == wanted[i].quantity);
    RC_ASSERT(got[i].maker_left == wanted[i].maker_left);
    RC_ASSERT(got[i].taker_left == wanted[i].taker_left);
  }
}

// Sends one random request to both books. `balance`: per side, the quantity ordered minus the
// quantity cancelled.
void random_request(Book& book, PlainBook& plain, std::uint64_t number, std::int64_t (&balance)[2],
                    std::uint64_t& last_trade) {
  const auto account = *rc::gen::inRange<Account>(0, 4);
  const auto price = *rc::gen::inRange<Price>(95, 106);
  const auto quantity = *rc::gen::inRange<Quantity>(1, 20);
  const auto kind = *rc::gen::inRange(0, 10);
  const OrderId old{account, *rc::gen::inRange<std::uint64_t>(0, number)};
  Trades got, wanted;
  if (kind < 5) {
    const Side side = *rc::gen::element(Side::kBuy, Side::kSell);
    const OrderId fresh{account, number};
    balance[int(side)] += quantity;
    const Answer answer = book.add(fresh, side, price, quantity, got);
    RC_ASSERT(answer.left == plain.enter({fresh, side, price, quantity}, wanted));
  } else if (kind < 8) {
    const auto found = plain.find(old);
    if (found != plain.orders.end())
      balance[int(found->side)] += std::int64_t{quantity} - found->open;
    const Answer answer = book.replace(old, price, quantity, got);
    const Answer right = plain.replace(old, price, quantity, wanted);
    RC_ASSERT(answer.verdict == right.verdict);
    RC_ASSERT(answer.left == right.left);
  } else {
    const auto found = plain.find(old);
    const bool open = found != plain.orders.end();
    const Answer answer = book.cancel(old);
    RC_ASSERT((answer.verdict == Verdict::kDone) == open);
    RC_ASSERT(answer.left == (open ? found->open : 0));
    if (open) {
      balance[int(found->side)] -= found->open;
      plain.orders.erase(found);
    }
  }
  same_trades(got, wanted);
  for (const Trade& trade : got) {
    RC_ASSERT(trade.number == ++last_trade);
    for (std::int64_t& side : balance) side -= trade.quantity;
  }
}

TEST_CASE("Random requests have the same results as in the plain book, and conserve quantity") {
  CHECK(rc::check("the book and the plain book have the same results", [] {
    Book book;
    PlainBook plain;
    std::int64_t balance[2] = {};
    std::uint64_t last_trade = 0;
    for (std::uint64_t number = 1; number < 120; ++number) {
      random_request(book, plain, number, balance, last_trade);
      const Summary bids = book.summary(Side::kBuy), asks = book.summary(Side::kSell);
      RC_ASSERT(bids == plain.summary(Side::kBuy));
      RC_ASSERT(asks == plain.summary(Side::kSell));
      RC_ASSERT(bids.orders == 0 || asks.orders == 0 || bids.best < asks.best);  // BOOK-1
      RC_ASSERT(std::int64_t(bids.open) == balance[0]);                          // BOOK-3
      RC_ASSERT(std::int64_t(asks.open) == balance[1]);
    }
  }));
}

}  // namespace
