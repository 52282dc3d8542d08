// SPDX-License-Identifier: Apache-2.0
#pragma once
// A deterministic world: one seeded generator, one event queue, one virtual clock.
//
// RULE  Everything that varies in a run is drawn from this generator, in event order.  No wall
//       clock, no thread, no unordered container, no address may influence a run.
// INVARIANT W1  events run in (time, sequence) order; the sequence breaks ties deterministically.
// INVARIANT W2  now() never goes back.
//
// Threads: one.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "dmt/base/assert.h"

namespace crane::consensus::sim {

class Random {  // splitmix64: the same numbers with every standard library
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool chance(std::uint64_t per_mille) { return below(1000) < per_mille; }

 private:
  std::uint64_t state_;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random(seed) { queue_.reserve(256); }

  void at(std::uint64_t time_ns, std::function<void()> action) {
    queue_.push_back({std::max(time_ns, now_ns_), sequence_++, std::move(action)});
    std::push_heap(queue_.begin(), queue_.end(), later);
  }
  void after(std::uint64_t delay_ns, std::function<void()> action) {
    at(now_ns_ + delay_ns, std::move(action));
  }
  // Runs one event; false when there is none left.
  bool step() {
    if (queue_.empty()) return false;
    std::pop_heap(queue_.begin(), queue_.end(), later);
    Event event = std::move(queue_.back());
    queue_.pop_back();
    CRANE_ASSERT(event.time_ns >= now_ns_);  // W2
    now_ns_ = event.time_ns;
    ++steps_;
    event.action();
    return true;
  }
  std::uint64_t now_ns() const { return now_ns_; }
  std::uint64_t steps() const { return steps_; }

  Random random;

 private:
  struct Event {
    std::uint64_t time_ns;
    std::uint64_t sequence;
    std::function<void()> action;
  };
  static bool later(const Event& a, const Event& b) {  // W1
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
  }

  std::vector<Event> queue_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace crane::consensus::sim
