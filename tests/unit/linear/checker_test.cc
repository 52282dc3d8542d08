// SPDX-License-Identifier: Apache-2.0
// GOAL    The checker returns ok exactly if a valid order exists, and unknown instead of a guess.
// METHOD  Hand-written histories; random ones of a real object; random ones with a wrong answer,
//         compared with a plain search of all orders.
// CHECKS  Verdicts; for each mutant of the checker some history gives another result than the brute
//         force.
// REPLAY  CRANE_SEED=n
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "tests/linear/checker.h"
#include "tests/linear/report.h"

namespace {

using namespace crane::linear;

std::uint64_t seed() {
  const char* given = std::getenv("CRANE_SEED");
  const std::uint64_t s = given != nullptr ? std::strtoull(given, nullptr, 10) : 20260;
  return s;
}

Operation op(Action action, std::int64_t argument, std::uint64_t called, std::uint64_t returned,
             std::int64_t result = 0, std::vector<std::int64_t> items = {}) {
  Operation o;
  o.action = action;
  o.argument = argument;
  o.called_ns = called;
  o.returned_ns = returned;
  o.result = result;
  o.items = std::move(items);
  return o;
}
Operation set(std::int64_t v, std::uint64_t called, std::uint64_t returned) {
  return op(Action::kSet, v, called, returned);
}
Operation get(std::int64_t v, std::uint64_t called, std::uint64_t returned) {
  return op(Action::kGet, 0, called, returned, v);
}
Operation incr(std::int64_t v, std::uint64_t called, std::uint64_t returned) {
  return op(Action::kIncr, 0, called, returned, v);
}
Operation push(std::int64_t v, std::int64_t length, std::uint64_t called, std::uint64_t returned) {
  return op(Action::kPush, v, called, returned, length);
}
Operation range(std::vector<std::int64_t> items, std::uint64_t called, std::uint64_t returned) {
  return op(Action::kRange, 0, called, returned, 0, std::move(items));
}

bool ok(const std::vector<Operation>& h) { return check(h).verdict == Verdict::kOk; }
bool violation(const std::vector<Operation>& h) { return check(h).verdict == Verdict::kViolation; }

// --- another opinion ----------------------------------------------------------------------------

// Tries every order, each on a new object.
struct BruteForce {
  const std::vector<Operation>& history;
  std::vector<bool> placed;
  std::vector<std::int64_t> values;  // all values ever put, in order

  explicit BruteForce(const std::vector<Operation>& h) : history(h), placed(h.size()) {}

  bool answers(const Operation& o) {
    const auto last = values.empty() ? kNil : values.back();
    const auto size = static_cast<std::int64_t>(values.size());
    switch (o.action) {
      case Action::kSet:
        values.push_back(o.argument);
        return true;
      case Action::kPush:
        values.push_back(o.argument);
        return o.open() || o.result == size + 1;
      case Action::kIncr:
        values.push_back(size + 1);
        return o.open() || o.result == size + 1;
      case Action::kGet:
        return o.open() || o.result == last;
      case Action::kRange:
        return o.open() || o.items == values;
    }
    return false;
  }

  bool explains() {
    bool all = true;
    std::uint64_t first_return = kOpen;
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (placed[i] || history[i].open()) continue;
      all = false;
      first_return = std::min(first_return, history[i].returned_ns);
    }
    if (all) return true;
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (placed[i] || history[i].called_ns > first_return) continue;
      const std::vector<std::int64_t> before = values;
      placed[i] = true;
      if (answers(history[i]) && explains()) return true;
      placed[i] = false;
      values = before;
    }
    return false;
  }
};

// --- random histories ---------------------------------------------------------------------------

struct Shape {
  std::size_t operations = 6;
  unsigned clients = 3;
  unsigned open_percent = 15;
};

// Clients of one object, which executes each operation at one moment, and an open one perhaps
// never.
std::vector<Operation> real_history(std::mt19937_64& random, Model model, const Shape& shape) {
  struct Planned {
    Operation o;
    std::uint64_t at;
    bool happens;
  };
  std::vector<Planned> plan;
  std::vector<std::uint64_t> free(shape.clients, 0);
  for (std::size_t i = 0; i < shape.operations; ++i) {
    const std::size_t client = random() % shape.clients;
    const bool writes = random() % 2 == 0;
    Planned p{};
    p.o.client = client;
    p.o.argument = static_cast<std::int64_t>(100 + i);
    p.o.action = model == Model::kRegister  ? (writes ? Action::kSet : Action::kGet)
                 : model == Model::kCounter ? (writes ? Action::kIncr : Action::kGet)
                                            : (writes ? Action::kPush : Action::kRange);
    p.o.called_ns = free[client] + random() % 10;
    p.at = p.o.called_ns + random() % 20;
    p.o.returned_ns = p.at + random() % 20;
    free[client] = p.o.returned_ns + 1;
    const bool open = random() % 100 < shape.open_percent;
    if (open) p.at += random() % 40;
    p.happens = !open || random() % 2 == 0;
    if (open) p.o.returned_ns = kOpen;
    plan.push_back(p);
  }
  std::stable_sort(plan.begin(), plan.end(),
                   [](const Planned& a, const Planned& b) { return a.at < b.at; });
  std::vector<std::int64_t> values;
  std::vector<Operation> history;
  for (Planned& p : plan) {
    if (p.happens && p.o.action == Action::kIncr) {
      values.push_back(static_cast<std::int64_t>(values.size()) + 1);
    } else if (p.happens && !p.o.reads()) {
      values.push_back(p.o.argument);
    }
    p.o.items = p.o.action == Action::kRange ? values : std::vector<std::int64_t>{};
    p.o.result = p.o.action == Action::kGet ? (values.empty() ? kNil : values.back())
                                            : static_cast<std::int64_t>(values.size());
    history.push_back(p.o);
  }
  std::shuffle(history.begin(), history.end(), random);
  return history;
}

// Replaces one answer by another one of this history, or by a value next to it.
void corrupt(std::mt19937_64& random, std::vector<Operation>& history) {
  Operation& victim = history[random() % history.size()];
  const Operation& other = history[random() % history.size()];
  switch (victim.action) {
    case Action::kGet:
      victim.result = other.action == Action::kSet ? other.argument : other.result;
      break;
    case Action::kIncr:
    case Action::kPush:
      victim.result += random() % 2 == 0 ? 1 : -1;
      break;
    case Action::kRange:
      if (!victim.items.empty() && random() % 2 == 0) {
        victim.items.pop_back();
      } else if (victim.items.size() > 1) {
        std::swap(victim.items[0], victim.items[random() % victim.items.size()]);
      }
      break;
    case Action::kSet:
      victim.returned_ns = victim.called_ns;
      break;
  }
}

Model any_model(std::mt19937_64& random) { return static_cast<Model>(random() % 3); }

}  // namespace

TEST_CASE("checker: the value of a register is the last one set, in some order", "[linear]") {
  CHECK(ok({}));
  CHECK(ok({get(kNil, 0, 1), set(1, 2, 3), get(1, 4, 5)}));
  CHECK(ok({set(1, 0, 10), set(2, 0, 10), get(1, 11, 12), get(1, 13, 14)}));
  CHECK(ok({set(1, 0, 10), get(kNil, 1, 3), get(1, 2, 9)}));
  CHECK(violation({set(1, 0, 1), get(kNil, 2, 3)}));                 // lost
  CHECK(violation({set(1, 0, 1), set(2, 2, 3), get(1, 4, 5)}));      // stale
  CHECK(violation({set(1, 0, 10), get(1, 1, 3), get(kNil, 4, 6)}));  // an old value again
  CHECK(violation({set(1, 0, 9), set(2, 0, 9), get(1, 10, 11), get(2, 12, 13)}));  // two orders
  CHECK(violation({get(1, 0, 1), set(1, 2, 3)}));  // from the future
}

TEST_CASE("checker: a counter counts each increment once", "[linear]") {
  CHECK(ok({get(kNil, 0, 1), incr(1, 2, 3), get(1, 4, 5), incr(2, 6, 7)}));
  CHECK(ok({incr(2, 0, 10), incr(1, 0, 10)}));
  CHECK(violation({incr(1, 0, 1), incr(1, 2, 3)}));  // the first one was lost
  CHECK(violation({incr(1, 0, 1), incr(3, 2, 3)}));  // one was done twice
  CHECK(violation({incr(2, 0, 1), incr(1, 2, 3)}));
}

TEST_CASE("checker: a list keeps all values in one order", "[linear]") {
  CHECK(ok({push(7, 1, 0, 1), push(8, 2, 2, 3), range({7, 8}, 4, 5)}));
  CHECK(ok({push(7, 2, 0, 9), push(8, 1, 0, 9), range({8}, 1, 8), range({8, 7}, 10, 11)}));
  CHECK(violation({push(7, 1, 0, 1), push(8, 2, 2, 3), range({8, 7}, 4, 5)}));
  CHECK(violation({push(7, 1, 0, 1), push(8, 2, 2, 3), range({8}, 4, 5)}));
  CHECK(violation({push(7, 1, 0, 1), push(8, 1, 2, 3)}));
  CHECK(violation({push(7, 1, 0, 1), range({7, 7}, 2, 3)}));
}

TEST_CASE("checker: an open operation may have happened at any later time, or never", "[linear]") {
  CHECK(ok({set(1, 0, kOpen), get(1, 5, 6)}));
  CHECK(ok({set(1, 0, kOpen), get(kNil, 5, 6)}));
  CHECK(ok({set(1, 0, kOpen), get(kNil, 5, 6), get(1, 7, 8)}));
  CHECK(ok({set(1, 0, kOpen), set(2, 5, 6), get(2, 7, 8), get(1, 9, 10)}));  // set late
  CHECK(violation({set(1, 0, kOpen), get(1, 5, 6), get(kNil, 7, 8)}));
  CHECK(violation({get(1, 0, 1), set(1, 2, kOpen)}));  // not before it was called
  CHECK(violation({set(1, 0, kOpen), set(2, 5, 6), get(1, 7, 8), get(2, 9, 10), get(1, 11, 12)}));
  CHECK(ok({incr(0, 0, kOpen), incr(0, 0, kOpen), incr(2, 5, 6), get(3, 7, 8)}));
  CHECK(violation({incr(0, 0, kOpen), incr(3, 5, 6)}));
  CHECK(ok({push(5, 0, 0, kOpen), push(6, 1, 1, 2), range({6, 5}, 3, 4)}));
  CHECK(ok({get(77, 0, kOpen), set(1, 1, 2)}));  // the result of an open read is unknown
}

TEST_CASE("checker: a search beyond its budget is unknown, neither ok nor a violation",
          "[linear]") {
  std::vector<Operation> h;
  for (std::int64_t i = 0; i < 16; ++i) h.push_back(set(i, 0, 1000));
  h.push_back(get(99, 2000, 2001));
  CHECK(check(h, {100, Mutant::kNone}).verdict == Verdict::kUnknown);
  h.pop_back();
  CHECK(check(h, {100, Mutant::kNone}).verdict == Verdict::kOk);
}

TEST_CASE("checker: the answers of a real object are always linearizable", "[linear]") {
  INFO("CRANE_SEED=" << seed());
  std::mt19937_64 random(seed());
  for (int i = 0; i < 600; ++i) {
    const Model model = any_model(random);
    const Shape shape{20 + random() % 150, 1 + static_cast<unsigned>(random() % 8), 4};
    const auto history = real_history(random, model, shape);
    const Answer answer = check(history);
    INFO(name(model) << " history " << i << " of " << shape.operations);
    REQUIRE(answer.verdict == Verdict::kOk);
  }
}

TEST_CASE("checker: it agrees with a search of all orders on small histories", "[linear]") {
  INFO("CRANE_SEED=" << seed());
  std::mt19937_64 random(seed());
  std::map<Verdict, int> seen;
  for (int i = 0; i < 30000; ++i) {
    const unsigned open_percent = i % 2 == 0 ? 20 : 60;
    const Shape shape{2 + random() % 6, 1 + static_cast<unsigned>(random() % 4), open_percent};
    auto history = real_history(random, any_model(random), shape);
    const auto wrong = random() % 3;
    for (std::uint64_t k = 0; k < wrong; ++k) corrupt(random, history);
    const Verdict expected = BruteForce(history).explains() ? Verdict::kOk : Verdict::kViolation;
    ++seen[expected];
    if (check(history).verdict != expected) {
      std::string text;
      for (const Operation& o : history) write_line(text, "?", o);
      FAIL("history " << i << ":\n" << text);
    }
  }
  CHECK(seen[Verdict::kOk] > 5000);
  CHECK(seen[Verdict::kViolation] > 5000);
}

TEST_CASE("checker: many open operations do not exhaust the budget", "[linear]") {
  INFO("CRANE_SEED=" << seed());
  std::mt19937_64 random(seed());
  for (int i = 0; i < 300; ++i) {
    const Model model = any_model(random);
    auto history = real_history(random, model, {150, 8, 50});
    std::uint64_t end = 0;
    for (const Operation& o : history) end = std::max(end, o.open() ? 0 : o.returned_ns);
    INFO(name(model) << " history " << i);
    REQUIRE(check(history, {2'000'000, Mutant::kNone}).verdict == Verdict::kOk);
    // At the end a value is read that was never put.
    history.push_back(model == Model::kList
                          ? range({-5}, end + 1, end + 2)
                          : get(model == Model::kRegister ? -5 : 4711, end + 1, end + 2));
    REQUIRE(check(history, {2'000'000, Mutant::kNone}).verdict == Verdict::kViolation);
  }
}

TEST_CASE("checker: each mutant differs from the search of all orders", "[linear]") {
  INFO("CRANE_SEED=" << seed());
  for (const Mutant mutant :
       {Mutant::kNoRealTime, Mutant::kCacheWithoutState, Mutant::kOpenNever, Mutant::kTrustReads}) {
    std::mt19937_64 random(seed());
    int caught_by = 0;
    for (int i = 1; i <= 20000 && caught_by == 0; ++i) {
      auto history = real_history(random, any_model(random), {7, 4, 20});
      if (i % 2 == 0) corrupt(random, history);
      const bool good = BruteForce(history).explains();
      if (good != (check(history, {1'000'000, mutant}).verdict == Verdict::kOk)) caught_by = i;
    }
    INFO("mutant " << static_cast<int>(mutant));
    CHECK(caught_by > 0);
    std::printf("mutant %d of the checker caught by history %d\n", static_cast<int>(mutant),
                caught_by);
  }
}

TEST_CASE("report: the window holds the unexplained answer and little else", "[linear]") {
  KeyHistory key{"r.1", Model::kRegister, {}};
  for (std::uint64_t i = 0; i < 50; ++i) {  // one after another
    const auto v = static_cast<std::int64_t>(i);
    key.operations.push_back(set(v, 100 * i, 100 * i + 10));
    key.operations.push_back(get(v, 100 * i + 20, 100 * i + 30));
  }
  CHECK(failing_window(key).answers == 0);
  key.operations[61].result = 12;  // the read after the 31st set
  key.operations[61].client = 4711;
  const Window w = failing_window(key);
  CHECK(w.at_ns == 3030);
  CHECK(w.answers == 62);
  INFO(w.text);
  CHECK(w.text.find("then it held 30;") != std::string::npos);
  CHECK(w.text.find("client 4711  get          -> 12") != std::string::npos);
  CHECK(std::count(w.text.begin(), w.text.end(), '\n') <= 8);
  CHECK(w.text.find("set 31") == std::string::npos);
}
