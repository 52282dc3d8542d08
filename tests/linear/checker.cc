// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/checker.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tests/linear/open_operations.h"

namespace crane::linear {
namespace {

using Bits = std::vector<std::uint64_t>;

void mix(std::size_t& hash, std::uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;
}

struct Configuration {
  Bits ordered;
  State state;
  bool operator==(const Configuration&) const = default;
};
struct HashConfiguration {
  std::size_t operator()(const Configuration& c) const {
    std::size_t hash = 0;
    for (const std::uint64_t word : c.ordered) mix(hash, word);
    mix(hash, static_cast<std::uint64_t>(c.state.value));
    for (const std::int64_t item : c.state.items) mix(hash, static_cast<std::uint64_t>(item));
    return hash ^ (hash >> 32);
  }
};

class Search {
 public:
  // With `every_state`, open operations without effect on any answer are tried, too.
  Search(std::span<const Operation> operations, const Limits& limits, bool every_state)
      : limits_(limits), every_state_(every_state), operations_(operations), open_(operations) {
    struct Moment {
      std::uint64_t at;
      bool returns;
      std::size_t operation;
    };
    std::vector<Moment> moments;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& op = operations[i];
      // The result of an open read does not matter.
      if (op.open() && (op.reads() || mutant(Mutant::kOpenNever))) continue;
      if (op.open() && !every_state_ && open_.needless(op)) continue;
      moments.push_back({mutant(Mutant::kNoRealTime) ? 0 : op.called_ns, false, i});
      if (op.open()) continue;
      ++unordered_;
      moments.push_back({op.returned_ns, true, i});
    }
    // At equal times calls come first, because the operations may overlap.
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      return a.at != b.at ? a.at < b.at : a.returns < b.returns;
    });
    // The list is circular; entry 0 is its head.
    entries_.resize(moments.size() + 1);
    returns_.resize(operations.size(), 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Entry& e = entries_[i];
      e.next = (i + 1) % entries_.size();
      e.previous = (i + entries_.size() - 1) % entries_.size();
      if (i == 0) continue;
      e.operation = moments[i - 1].operation;
      e.returns = moments[i - 1].returns;
      if (e.returns) returns_[e.operation] = i;
    }
    ordered_.resize((operations.size() + 63) / 64);
    // A register can return to an old value.
    bounded_ = std::none_of(operations.begin(), operations.end(),
                            [](const Operation& op) { return op.action == Action::kSet; });
  }

  // Finds the next order of all returned operations. Returns false if there is none or the steps
  // are used up.
  bool next() {
    if (!std::exchange(begun_, true) && unordered_ == 0) return true;
    std::size_t at = entries_[0].next;  // a full order is followed by open operations only
    for (;;) {
      if (at != 0 && !entries_[at].returns) {
        if (steps_ == limits_.steps) return false;
        ++steps_;
        if (!take(at)) {
          at = entries_[at].next;
          continue;
        }
        if (unordered_ == 0) return true;
        at = entries_[0].next;
        continue;
      }
      if (decisions_.empty()) return false;
      at = entries_[give_back()].next;
    }
  }

  bool exhausted() const noexcept { return steps_ == limits_.steps; }
  std::uint64_t steps() const noexcept { return steps_; }
  const State& state() const noexcept { return state_; }

 private:
  struct Entry {
    std::size_t next = 0, previous = 0, operation = 0;
    bool returns = false;
  };
  struct Decision {
    std::size_t entry;
    State before;
  };

  bool mutant(Mutant m) const noexcept { return limits_.test_only_mutant == m; }

  bool placed(std::size_t i) const { return (ordered_[i / 64] >> (i % 64) & 1) != 0; }

  bool behind_open_set() const {
    if (decisions_.empty()) return false;
    const Operation& last = operations_[entries_[decisions_.back().entry].operation];
    return last.open() && last.action == Action::kSet;
  }

  bool take(std::size_t at) {
    const std::size_t i = entries_[at].operation;
    const Operation& op = operations_[i];
    if (!every_state_ && behind_open_set() && op.action != Action::kGet) return false;  // LINEAR-1
    const std::size_t twin = op.open() ? open_.before(i) : OpenOperations::kNone;
    if (twin != OpenOperations::kNone && !placed(twin)) return false;  // LINEAR-2
    State after = state_;
    const bool trusted = mutant(Mutant::kTrustReads) && op.reads();
    if (!trusted && !apply(after, op)) return false;
    Configuration c{ordered_, after};
    c.ordered[i / 64] |= std::uint64_t{1} << (i % 64);
    if (op.open() && bounded_ && !open_.bearable(after, c.ordered)) return false;  // LINEAR-3
    Bits bits = c.ordered;
    if (mutant(Mutant::kCacheWithoutState)) c.state = State{};
    if (!seen_.insert(std::move(c)).second) return false;
    ordered_ = std::move(bits);
    decisions_.push_back({at, std::exchange(state_, std::move(after))});
    unlink(at);
    if (returns_[i] != 0) {
      unlink(returns_[i]);
      --unordered_;
    }
    return true;
  }

  // Takes the last decision back and returns its entry.
  std::size_t give_back() {
    Decision last = std::move(decisions_.back());
    decisions_.pop_back();
    const std::size_t i = entries_[last.entry].operation;
    if (returns_[i] != 0) {
      link(returns_[i]);
      ++unordered_;
    }
    link(last.entry);
    ordered_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    state_ = std::move(last.before);
    return last.entry;
  }

  void unlink(std::size_t at) {
    entries_[entries_[at].previous].next = entries_[at].next;
    entries_[entries_[at].next].previous = entries_[at].previous;
  }
  void link(std::size_t at) {
    entries_[entries_[at].previous].next = at;
    entries_[entries_[at].next].previous = at;
  }

  const Limits limits_;
  const bool every_state_;
  std::span<const Operation> operations_;
  const OpenOperations open_;
  bool bounded_ = false;  // LINEAR-3 holds
  std::vector<Entry> entries_;
  std::vector<std::size_t> returns_;  // entry of each operation, or 0
  std::size_t unordered_ = 0;         // returned operations without a place
  std::vector<Decision> decisions_;
  Bits ordered_;
  State state_;
  std::unordered_set<Configuration, HashConfiguration> seen_;
  std::uint64_t steps_ = 0;
  bool begun_ = false;
};

}  // namespace

bool apply(State& state, const Operation& op) {
  switch (op.action) {
    case Action::kSet:
      state.value = op.argument;
      return true;
    case Action::kGet:
      return op.open() || op.result == state.value;
    case Action::kIncr:
      state.value = state.value == kNil ? 1 : state.value + 1;
      return op.open() || op.result == state.value;
    case Action::kPush:
      state.items.push_back(op.argument);
      return op.open() || op.result == static_cast<std::int64_t>(state.items.size());
    case Action::kRange:
      return op.open() || op.items == state.items;
  }
  return false;
}

Answer check(std::span<const Operation> operations, const Limits& limits) {
  Search search(operations, limits, false);
  const bool found = search.next();
  const Verdict verdict = found                ? Verdict::kOk
                          : search.exhausted() ? Verdict::kUnknown
                                               : Verdict::kViolation;
  return {verdict, search.steps()};
}

std::vector<State> states_after(std::span<const Operation> operations, std::size_t most,
                                const Limits& limits) {
  Search search(operations, limits, true);
  std::vector<State> states;
  while (states.size() < most && search.next()) {
    if (std::find(states.begin(), states.end(), search.state()) == states.end()) {
      states.push_back(search.state());
    }
  }
  return search.exhausted() ? std::vector<State>{} : states;
}

}  // namespace crane::linear
