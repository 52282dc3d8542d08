// SPDX-License-Identifier: Apache-2.0
#pragma once
// A deterministic world: one seeded generator, one event queue, one virtual clock.
//
// RULE  Everything that varies in a run is drawn from this generator, in event order.  No wall
//       clock, no thread, no unordered container, no address may influence a run.
// INVARIANT SIM-W1  events run in (time, sequence) order; the sequence breaks ties
//               deterministically.
// INVARIANT SIM-W2  now() never goes back.
//
// Threads: one.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "consensus/sim/task.h"
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
  // Around `mean`, widely spread.
  std::uint64_t about(std::uint64_t mean) { return between(mean / 4, mean * 7 / 4); }
  bool chance(std::uint64_t per_mille) { return below(1000) < per_mille; }

 private:
  std::uint64_t state_;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random(seed) { due_.reserve(256); }

  template <typename What>
  void at(std::uint64_t time_ns, What&& what) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(tasks_.size());
      tasks_.emplace_back(std::forward<What>(what));
    } else {
      slot = free_.back();
      free_.pop_back();
      tasks_[slot].set(std::forward<What>(what));
    }
    due_.push_back({std::max(time_ns, now_ns_), sequence_++, slot});
    std::push_heap(due_.begin(), due_.end(), Later{});
  }
  template <typename What>
  void after(std::uint64_t delay_ns, What&& what) {
    at(now_ns_ + delay_ns, std::forward<What>(what));
  }
  // Runs one event; false when there is none left.
  bool step() {
    if (due_.empty()) return false;
    std::pop_heap(due_.begin(), due_.end(), Later{});
    const Due due = due_.back();
    due_.pop_back();
    CRANE_ASSERT(due.time_ns >= now_ns_);  // SIM-W2
    now_ns_ = due.time_ns;
    ++steps_;
    Task& task = tasks_[due.slot];
    task();
    task.clear();
    free_.push_back(due.slot);
    return true;
  }
  std::uint64_t now_ns() const { return now_ns_; }
  std::uint64_t steps() const { return steps_; }

  Random random;

 private:
  struct Due {
    std::uint64_t time_ns;
    std::uint64_t sequence;
    std::uint32_t slot;  // index in tasks_, which do not move while the heap is sorted
  };
  struct Later {  // SIM-W1
    bool operator()(const Due& a, const Due& b) const {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
    }
  };

  std::vector<Due> due_;             // a heap
  std::deque<Task> tasks_;           // they stay in place while they run and create others
  std::vector<std::uint32_t> free_;  // slots
  std::uint64_t now_ns_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace crane::consensus::sim
