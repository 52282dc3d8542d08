// SPDX-License-Identifier: Apache-2.0
// engine-load: clients that trade with each other on an engine, and check everything.
//
// Each client is an account with a connection and a thread. It sends new orders, replacements and
// cancellations at random, one at a time, and compares each answer with its record of its orders.
// At the end all trades are merged: each has one buyer and one seller with the same report, their
// numbers have no gap, and the engine's open orders are the clients'.
//
// Output: a line per kind of request, `KIND COUNT RATE/s p50 US us p99 US us`, then the books'
// digest.  Exit: 0, 1 an answer is wrong (named on standard error), 2 wrong use.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "eval/engine/wire.h"

namespace {

using namespace engine;
using Clock = std::chrono::steady_clock;

constexpr Price kMiddle = 10'000;
enum Kind : std::size_t { kNew, kCancel, kReplace };

struct Options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 7001;
  unsigned clients = 8;
  std::uint16_t symbols = 8;
  std::uint64_t requests = 10'000;  // of all clients together
  std::uint64_t seed = 1;
};

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::fputs("engine-load: ", stderr);
  std::vfprintf(stderr, format, list);
  std::fputc('\n', stderr);
  va_end(list);
  _exit(1);
}

// A client's record of a trade.
struct Received {
  std::uint16_t symbol;
  std::uint64_t number;
  Side side;
  Price price;
  Quantity quantity;
};

class Client {
 public:
  Client(const Options& options, unsigned account)
      : options_(options),
        account_(account),
        random_(options.seed * 1000 + account),
        last_trade_(options.symbols) {}

  void open() {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(options_.port);
    inet_pton(AF_INET, options_.address.c_str(), &a.sin_addr);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) {
      fail("no engine at %s:%u: %s", options_.address.c_str(), unsigned{options_.port},
           std::strerror(errno));
    }
    ask({.ask = Ask::kLogon, .order = account_});
    for (std::uint16_t s = 0; s < options_.symbols; ++s) {
      ask({.ask = Ask::kCancelAll, .symbol = s});
    }
  }

  void work(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto before = Clock::now();
      const std::size_t kind = step();
      const std::chrono::duration<double, std::micro> took = Clock::now() - before;
      times[kind].push_back(took.count());
    }
  }

  // Receives every trade that has happened.
  void sync() {
    for (std::uint16_t s = 0; s < options_.symbols; ++s) ask({.ask = Ask::kBook, .symbol = s});
  }

  // Sends a request and returns its answer. Trades that come before it are recorded.
  Report ask(const Request& request) {
    if (send(fd_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
      fail("client %u: sending: %s", account_, std::strerror(errno));
    }
    for (;;) {
      Report report;
      if (recv(fd_, &report, sizeof report, MSG_WAITALL) != sizeof report) {
        fail("client %u: the engine closed the connection", account_);
      }
      if (report.kind == ReportKind::kTook || report.kind == ReportKind::kMade) {
        note(report, request);
        continue;
      }
      if (report.order != request.order || report.symbol != request.symbol) {
        fail("client %u: an answer to order %llu instead of %llu", account_,
             static_cast<unsigned long long>(report.order),
             static_cast<unsigned long long>(request.order));
      }
      return report;
    }
  }

  std::uint64_t open_quantity(std::uint16_t symbol, Side side) const {
    std::uint64_t sum = 0;
    for (const auto& [unused, order] : orders_) {
      if (order.symbol == symbol && order.side == side) sum += order.open;
    }
    return sum;
  }

  std::array<std::vector<double>, 3> times;  // us: new, cancel, replace
  std::vector<Received> received;

 private:
  struct Order {
    std::uint16_t symbol;
    Side side;
    Price price;
    Quantity open;  // 0: closed
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  Price draw_price(Side side) {
    const auto away = static_cast<Price>(draw(24)) - 6;  // below 0: it may cross
    return side == Side::kBuy ? kMiddle - away : kMiddle + away;
  }

  std::size_t step() {
    const std::uint64_t dice = draw(10);
    if (dice < 5 || known_.empty()) return place(), kNew;
    const std::size_t chosen = draw(known_.size());
    if (dice < 8) return cancel(chosen), kCancel;
    return replace(chosen), kReplace;
  }

  void place() {
    const auto symbol = static_cast<std::uint16_t>(draw(options_.symbols));
    const Side side = draw(2) == 0 ? Side::kBuy : Side::kSell;
    const auto quantity = static_cast<Quantity>(1 + draw(100));
    const Price price = draw_price(side);
    const std::uint64_t number = ++last_order_;
    const Order& order = orders_[number] = {symbol, side, price, quantity};
    known_.push_back(number);
    const Report report = ask({.ask = Ask::kNew,
                               .side = side,
                               .symbol = symbol,
                               .quantity = quantity,
                               .order = number,
                               .price = price});
    expect(report, Verdict::kDone, order.open);
  }

  // The order may have been traded already; then the engine does not know it any more.
  void cancel(std::size_t chosen) {
    const std::uint64_t number = known_[chosen];
    Order& order = orders_.at(number);
    const Report report = ask({.ask = Ask::kCancel, .symbol = order.symbol, .order = number});
    expect(report, order.open > 0 ? Verdict::kDone : Verdict::kUnknownOrder, order.open);
    order.open = 0;
    forget(chosen);
  }

  void replace(std::size_t chosen) {
    const std::uint64_t number = known_[chosen];
    Order& order = orders_.at(number);
    const Request request{.ask = Ask::kReplace,
                          .side = order.side,
                          .symbol = order.symbol,
                          .quantity = static_cast<Quantity>(1 + draw(100)),
                          .order = number,
                          .price = draw_price(order.side)};
    replaced_ = false;
    const Report report = ask(request);
    if (!replaced_ && order.open == 0) {
      expect(report, Verdict::kUnknownOrder, 0);
      forget(chosen);
      return;
    }
    if (!replaced_) apply(request, order);
    expect(report, Verdict::kDone, order.open);
  }

  void forget(std::size_t chosen) {
    known_[chosen] = known_.back();
    known_.pop_back();
  }

  void apply(const Request& request, Order& order) {
    order.price = request.price;
    order.open = request.quantity;
    replaced_ = true;
  }

  void expect(const Report& report, Verdict verdict, Quantity left) const {
    if (report.kind != ReportKind::kAnswer || report.verdict != verdict || report.left != left) {
      fail("client %u, order %llu: answer %d, verdict %d, %u left instead of verdict %d, %u left",
           account_, static_cast<unsigned long long>(report.order), int(report.kind),
           int(report.verdict), report.left, int(verdict), left);
    }
  }

  // A trade that arrives before the answer to `pending`.
  void note(const Report& report, const Request& pending) {
    const auto found = orders_.find(report.order);
    if (found == orders_.end()) {
      fail("client %u: a trade of order %llu, which is not its own", account_,
           static_cast<unsigned long long>(report.order));
    }
    Order& order = found->second;
    const bool took = report.kind == ReportKind::kTook;
    if (took && pending.ask == Ask::kReplace && !replaced_ && order.open > 0) apply(pending, order);
    const bool buys = order.side == Side::kBuy;
    const bool good_price = !took  ? report.price == order.price
                            : buys ? report.price <= order.price
                                   : report.price >= order.price;
    const bool mine = !took || (report.order == pending.order &&
                                (pending.ask == Ask::kNew || pending.ask == Ask::kReplace));
    if (!good_price || !mine || report.side != order.side || report.symbol != order.symbol ||
        report.quantity == 0 || report.quantity > order.open ||
        order.open - report.quantity != report.left) {
      fail("client %u, order %llu (%u open at %lld): a trade of %u at %lld, %u left", account_,
           static_cast<unsigned long long>(report.order), order.open,
           static_cast<long long>(order.price), report.quantity,
           static_cast<long long>(report.price), report.left);
    }
    order.open = report.left;
    std::uint64_t& last = last_trade_[order.symbol];
    if (report.number < last)
      fail("client %u: trades of symbol %u out of order", account_, unsigned{order.symbol});
    last = report.number;
    received.push_back({order.symbol, report.number, order.side, report.price, report.quantity});
  }

  const Options& options_;
  const unsigned account_;
  std::mt19937_64 random_;
  int fd_ = -1;
  std::map<std::uint64_t, Order> orders_;
  std::vector<std::uint64_t> known_;  // orders to cancel or replace next
  std::uint64_t last_order_ = 0;
  bool replaced_ = false;                  // the pending replacement has happened
  std::vector<std::uint64_t> last_trade_;  // by symbol
};

// Each trade has one buyer and one seller with the same report; no number is missing.
void check_trades(const std::vector<std::unique_ptr<Client>>& clients) {
  std::vector<Received> all;
  for (const auto& client : clients) {
    all.insert(all.end(), client->received.begin(), client->received.end());
  }
  std::sort(all.begin(), all.end(), [](const Received& a, const Received& b) {
    return std::tie(a.symbol, a.number, a.side) < std::tie(b.symbol, b.number, b.side);
  });
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const Received& a = all[i];
    const bool pair = i + 1 < all.size() && all[i + 1].number == a.number &&
                      all[i + 1].symbol == a.symbol && a.side == Side::kBuy &&
                      all[i + 1].side == Side::kSell && all[i + 1].price == a.price &&
                      all[i + 1].quantity == a.quantity;
    const bool follows =
        i == 0 || all[i - 1].symbol != a.symbol || all[i - 1].number + 1 == a.number;
    if (!pair || !follows) {
      fail(
          "trade %llu of symbol %u: the reports of buyer and seller differ, or the previous trade "
          "is missing",
          static_cast<unsigned long long>(a.number), unsigned{a.symbol});
    }
  }
  std::printf("trades %zu\n", all.size() / 2);
}

// The engine's open orders are the clients'. Prints a digest of all books.
void check_books(const std::vector<std::unique_ptr<Client>>& clients, std::uint16_t symbols) {
  std::uint64_t digest = 0;
  for (std::uint16_t symbol = 0; symbol < symbols; ++symbol) {
    for (const Side side : {Side::kBuy, Side::kSell}) {
      const Report book = clients[0]->ask({.ask = Ask::kBook, .side = side, .symbol = symbol});
      std::uint64_t open = 0;
      for (const auto& client : clients) open += client->open_quantity(symbol, side);
      if (book.kind != ReportKind::kBook || book.total != open) {
        fail("symbol %u, %s side: %llu lots are open instead of %llu", unsigned{symbol},
             side == Side::kBuy ? "buying" : "selling", static_cast<unsigned long long>(book.total),
             static_cast<unsigned long long>(open));
      }
      digest = (digest ^ book.number) * 0x9e3779b97f4a7c15u;
    }
  }
  std::printf("books %016llx\n", static_cast<unsigned long long>(digest));
}

void print_times(const std::vector<std::unique_ptr<Client>>& clients, double seconds) {
  static constexpr const char* kNames[] = {"new", "cancel", "replace"};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    std::vector<double> every;
    for (const auto& client : clients) {
      every.insert(every.end(), client->times[kind].begin(), client->times[kind].end());
    }
    if (every.empty()) continue;
    std::sort(every.begin(), every.end());
    const double count = static_cast<double>(every.size());
    std::printf("%s %zu %.0f/s p50 %.1f us p99 %.1f us\n", kNames[kind], every.size(),
                count / seconds, every[every.size() / 2], every[every.size() * 99 / 100]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Clients of a matching engine that check every answer");
  app.option_defaults()->always_capture_default();
  app.add_option("--address", options.address, "of the engine");
  app.add_option("--port", options.port, "");
  app.add_option("--clients", options.clients, "accounts 0 .. this - 1")->check(CLI::Range(1, 256));
  app.add_option("--symbols", options.symbols, "to trade, 0 .. this - 1")
      ->check(CLI::Range(1, 65535));
  app.add_option("--requests", options.requests, "of all clients together");
  app.add_option("--seed", options.seed, "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (unsigned i = 0; i < options.clients; ++i) {
    clients.push_back(std::make_unique<Client>(options, i));
    clients.back()->open();
  }
  const auto began = Clock::now();
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&] { client->work(options.requests / options.clients); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = Clock::now() - began;
  for (const auto& client : clients) client->sync();
  print_times(clients, seconds.count());
  check_trades(clients);
  check_books(clients, options.symbols);
  return 0;
}
