// SPDX-License-Identifier: Apache-2.0
#pragma once
// The replicated program of one replica.  It runs the entries that it receives in order, a limited
// number per moment; a hash represents what it has run.  Under the stall rule a follower's server
// runs no further than the leader's has passed.
//
// Threads: one.

#include <cstdint>
#include <deque>

namespace crane::replica::sim {

class ReplicaWorld;

class ModelServer {
 public:
  ModelServer(const ReplicaWorld& world, unsigned id) : world_(world), id_(id) {}

  // Starts the server, which runs from `at_ns` on and contains the entries up to `behind`.
  void start(std::uint64_t behind, std::uint64_t hash, std::int64_t at_ns);
  // Another one replaces it; the entries that arrived for it stay.
  void start_again(std::uint64_t hash, std::int64_t at_ns);
  void end() { state_ = State::kEnded; }
  // True once, when it begins to run.
  bool take_arrivals();
  bool runs() const { return state_ == State::kRuns; }
  // An entry has crashed it.
  bool crashed() const { return crashed_; }
  // It is in the middle of a computation.
  bool computes() const;

  // Entries up to `upto` arrived for it; some may be held.
  void arrived_for_it(std::uint64_t upto);
  // Runs the entries up to `delivered`, but stops at `limit`.
  void run(std::uint64_t delivered, std::uint64_t limit);
  // It has run something else than the others.
  void differ() { hash_ ^= 1; }

  std::uint64_t applied() const { return applied_; }
  // The last entry that it has run and that is for servers.
  std::uint64_t ran() const { return ran_; }
  std::uint64_t hash() const { return hash_; }
  // Age of the oldest entry that arrived for it and that it has not run.
  std::int64_t behind_ns() const;
  // It has reached the limit, and has more entries.
  bool waits_at_limit() const { return waits_; }

 private:
  enum class State : std::uint8_t { kEnded, kStarts, kRuns };
  struct Arrival {
    std::uint64_t upto = 0;
    std::int64_t at_ns = 0;
  };
  unsigned entries_now();

  const ReplicaWorld& world_;
  const unsigned id_;
  State state_ = State::kEnded;
  std::int64_t runs_ns_ = 0;  // the time from which it runs
  std::uint64_t applied_ = 0, ran_ = 0, hash_ = 0;
  std::deque<Arrival> arrivals_;  // entries that it has not run
  std::uint64_t arrived_upto_ = 0;
  bool waits_ = false;
  bool crashed_ = false;
  unsigned moments_ = 0;
};

}  // namespace crane::replica::sim
