// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_server.h"

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

// A server without a processor runs one entry per this many moments.
constexpr unsigned kStarvedMoments = 5;

}  // namespace

void ModelServer::start(std::uint64_t behind, std::uint64_t hash, std::int64_t at_ns) {
  state_ = State::kStarts;
  runs_ns_ = at_ns;
  applied_ = ran_ = arrived_upto_ = behind;
  hash_ = hash;
  arrivals_.clear();
  waits_ = crashed_ = false;
}

void ModelServer::start_again(std::uint64_t hash, std::int64_t at_ns) {
  state_ = State::kStarts;
  runs_ns_ = at_ns;
  hash_ = hash;
}

bool ModelServer::computes() const { return world_.now_ns() < runs_ns_; }

bool ModelServer::take_arrivals() {
  if (state_ != State::kStarts || world_.now_ns() < runs_ns_) return false;
  state_ = State::kRuns;
  return true;
}

unsigned ModelServer::entries_now() {
  if (!world_.slow(id_)) return world_.settings().runs_at_once;
  return ++moments_ % kStarvedMoments == 0 ? 1 : 0;
}

void ModelServer::arrived_for_it(std::uint64_t upto) {
  if (upto <= arrived_upto_) return;
  arrivals_.push_back({upto, world_.now_ns()});
  arrived_upto_ = upto;
}

void ModelServer::run(std::uint64_t delivered, std::uint64_t limit) {
  if (world_.server_stopped(id_) || computes()) return;
  waits_ = false;
  for (unsigned left = entries_now(); applied_ < delivered;) {
    const bool passed = world_.log().entry(applied_ + 1).kind == LogEntry::Kind::kPassed;
    waits_ = !passed && applied_ >= limit;
    if (!passed && (waits_ || left == 0)) break;
    hash_ = world_.next_hash(hash_, ++applied_);
    if (passed) continue;
    --left;
    ran_ = applied_;
    const LogEntry& e = world_.log().entry(applied_);
    if (e.kind != LogEntry::Kind::kInput) continue;
    const Settings& s = world_.settings();
    crashed_ = e.number == s.crashes_by;
    if (crashed_) return end();
    if (s.compute_each == 0 || e.number % s.compute_each != 0) continue;
    runs_ns_ = world_.now_ns() + s.compute_ns;
    break;
  }
  while (!arrivals_.empty() && arrivals_.front().upto <= applied_) arrivals_.pop_front();
}

std::int64_t ModelServer::behind_ns() const {
  return arrivals_.empty() ? 0 : world_.now_ns() - arrivals_.front().at_ns;
}

}  // namespace crane::replica::sim
