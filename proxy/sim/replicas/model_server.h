// SPDX-License-Identifier: Apache-2.0
#pragma once
// The replicated program of one replica: it runs the entries that it is given, in their order, so
// many per moment; what it has run is a hash.  Under the stall rule a follower's runs no further
// than the leader's has passed.
//
// Threads: one.

#include <cstdint>
#include <deque>

namespace crane::replica::sim {

class ReplicaWorld;

class ModelServer {
 public:
  ModelServer(const ReplicaWorld& world, unsigned id) : world_(world), id_(id) {}

  // It comes, and runs from `at_ns` on; it holds what is up to `behind`.
  void start(std::uint64_t behind, std::uint64_t hash, std::int64_t at_ns);
  // Another one takes its place; what came for it stays.
  void start_again(std::uint64_t hash, std::int64_t at_ns);
  void end() { state_ = State::kGone; }
  // True once, when it runs.
  bool came();
  bool runs() const { return state_ == State::kRuns; }
  // It crashed by what it ran.
  bool crashed() const { return crashed_; }
  // It is in the middle of a computation.
  bool computes() const;

  // Entries up to there came for it; some may be held.
  void came_for_it(std::uint64_t upto);
  // It was given all up to `given`; `limit`: where it must stop.
  void run(std::uint64_t given, std::uint64_t limit);
  // It has run something else than the others.
  void differ() { hash_ ^= 1; }

  std::uint64_t applied() const { return applied_; }
  // The last entry that it has run which is one for servers.
  std::uint64_t ran() const { return ran_; }
  std::uint64_t hash() const { return hash_; }
  // Age of the oldest entry that came for it and that it has not run.
  std::int64_t behind_ns() const;
  // It has come to the limit, and was given more.
  bool waits_at_limit() const { return waits_; }

 private:
  enum class State : std::uint8_t { kGone, kStarts, kRuns };
  struct Came {
    std::uint64_t upto = 0;
    std::int64_t at_ns = 0;
  };
  unsigned entries_now();

  const ReplicaWorld& world_;
  const unsigned id_;
  State state_ = State::kGone;
  std::int64_t runs_ns_ = 0;  // from when on
  std::uint64_t applied_ = 0, ran_ = 0, hash_ = 0;
  std::deque<Came> came_;  // that it has not run
  std::uint64_t came_upto_ = 0;
  bool waits_ = false;
  bool crashed_ = false;
  unsigned moments_ = 0;
};

}  // namespace crane::replica::sim
