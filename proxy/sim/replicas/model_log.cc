// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_log.h"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

namespace crane::replica::sim {
namespace {

// A dead leader is noticed at once, a stopped one after a few heartbeats.
constexpr std::int64_t kElectNs = 20'000'000;

}  // namespace

std::uint64_t ModelLog::gap_behind(unsigned id, std::uint64_t behind) const {
  const Acceptor& a = acceptors_[id];
  return a.last > behind && a.first > behind + 1 ? a.first : 0;
}

void ModelLog::join(unsigned id, std::optional<std::uint64_t> behind) {
  Acceptor& a = acceptors_[id];
  a.process = a.runs = true;
  a.streaming = a.lacks = false;
  if (options_.keeps) a.kept = behind ? *behind : a.first - 1;  // until the node names a place
  if (behind && *behind > a.last) {  // what it held is older than the checkpoint
    a.first = *behind + 1;
    a.last = *behind;
  }
  a.lag_ns = 0;
  a.ran = behind.value_or(0);
}

void ModelLog::leave(unsigned id) {
  Acceptor& a = acceptors_[id];
  a.process = a.runs = a.streaming = a.lacks = false;
  if (leader_ == id) depose();
}

// The replica returns in another incarnation, and as a voter when it has the log (C5).
void ModelLog::lose_power(unsigned id) {
  if (options_.on_disk) return;
  Acceptor& a = acceptors_[id];
  a.first = 1;
  a.last = 0;
  a.kept.reset();
  a.amnesiac = true;
}

void ModelLog::checkpointed(unsigned id, std::uint64_t at) {
  acceptors_[id].checkpoint = std::max(acceptors_[id].checkpoint, at);
}

// A majority holds a checkpoint there: each can begin again without the entries before.
void ModelLog::cut() {
  if (!options_.on_disk) return;
  std::array<std::uint64_t, kReplicasMost> held{};
  for (unsigned id = 0; id < replicas(); ++id) held[id] = acceptors_[id].checkpoint;
  std::sort(held.begin(), held.begin() + replicas(), std::greater<>());
  const std::uint64_t at = held[replicas() / 2];
  for (Acceptor& a : acceptors_) {
    if (a.streaming && a.last >= at) a.first = std::max(a.first, at + 1);
  }
}

std::uint64_t ModelLog::last_for_servers() const {
  std::uint64_t at = committed_;
  while (at > 0 && entry(at).kind == LogEntry::Kind::kPassed) --at;
  return at;
}

unsigned ModelLog::running() const {
  return static_cast<unsigned>(
      std::count_if(acceptors_.begin(), acceptors_.end(),
                    [](const Acceptor& a) { return a.runs && a.votes && !a.amnesiac; }));
}

unsigned ModelLog::voters() const {
  return static_cast<unsigned>(std::count_if(acceptors_.begin(), acceptors_.end(),
                                             [](const Acceptor& a) { return a.votes; }));
}

bool ModelLog::is_lost() const {
  const auto forgot = std::count_if(acceptors_.begin(), acceptors_.end(),
                                    [](const Acceptor& a) { return a.votes && a.amnesiac; });
  return static_cast<unsigned>(forgot) * 2 >= voters();
}

bool ModelLog::cannot_commit() const {
  if (options_.keeps || options_.on_disk || leader_ == kNone) return false;
  const auto gets = std::count_if(acceptors_.begin(), acceptors_.end(), [](const Acceptor& a) {
    return a.votes && !a.amnesiac && !a.lacks;
  });
  return static_cast<unsigned>(gets) * 2 <= voters();
}

// Candidates hold all committed entries; further servers are preferred (consensus/DESIGN.md, C6).
unsigned ModelLog::best_candidate() {
  unsigned best = kNone;
  const auto rank = [this](unsigned id) {
    const Acceptor& a = acceptors_[id];
    return std::tuple(a.lag_ns == 0, a.lag_ns == 0 ? 0 : a.ran, replicas() - id);
  };
  for (unsigned id = 0; id < replicas(); ++id) {
    const Acceptor& a = acceptors_[id];
    candidates_[id] = a.runs && a.votes && !a.amnesiac && a.last >= committed_;
    if (!candidates_[id]) continue;
    if (best == kNone || rank(id) > rank(best)) best = id;
  }
  return best;
}

void ModelLog::lead(unsigned id) {
  leader_ = id;
  view_ = View{++reign_ * 256 + id};
  const std::uint64_t last = acceptors_[id].last;
  lost_committed_ = lost_committed_ || last < committed_;
  entries_.resize(last);
  for (Acceptor& a : acceptors_) {
    a.last = std::min(a.last, last);
    a.streaming = false;
  }
  acceptors_[id].streaming = true;
  acceptors_[id].lacks = false;
}

void ModelLog::step(std::int64_t now_ns) {
  const bool led = leader_ != kNone && acceptors_[leader_].runs && has_majority();
  if (led) {
    leaderless_since_ns_ = now_ns;
  } else if (has_majority() && now_ns - leaderless_since_ns_ >= kElectNs) {
    if (const unsigned next = best_candidate(); next != kNone) {
      lead(next);
      elected_ = view_;
      leaderless_since_ns_ = now_ns;
    }
  } else if (leader_ != kNone && !has_majority()) {
    depose();  // it is connected to no majority
  }
  if (leader_ == kNone) return;
  stream();
  commit();
  cut();
}

bool ModelLog::transfer(unsigned to) {
  if (leader_ == kNone || to == leader_) return false;
  const Acceptor& a = acceptors_[to];
  if (!a.runs || !a.streaming || !a.votes || a.last < acceptors_[leader_].last) return false;
  lead(to);
  return true;
}

// Whether one more entry would overwrite only entries that are committed and not kept.
bool ModelLog::has_room(const Acceptor& a) const {
  const std::uint64_t ring = options_.ring_entries;
  if (full_) return false;
  return a.last < committed_ + ring && (!a.kept || a.last < *a.kept + ring);
}

void ModelLog::write(Acceptor& a, std::uint64_t upto) {
  const std::uint64_t ring = options_.ring_entries;
  while (a.last < upto && has_room(a)) ++a.last;
  if (!options_.on_disk && a.last >= ring) a.first = std::max(a.first, a.last - ring + 1);
}

// A stopped process keeps the permission that it gave.
void ModelLog::stream() {
  const Acceptor& from = acceptors_[leader_];
  for (unsigned id = 0; id < replicas(); ++id) {
    Acceptor& to = acceptors_[id];
    if (id == leader_ || !to.process) continue;
    if (!to.streaming) {
      if (!to.runs) continue;
      to.lacks = from.last > to.last && from.first > to.last + 1;
      if (to.lacks) continue;
      to.streaming = true;
    }
    write(to, from.last);
    admit(to, from.last);
  }
}

// The leader proposes a CONFIG without the old vote, and one with the new vote when the replica has
// the log.
void ModelLog::admit(Acceptor& a, std::uint64_t last) {
  if (!a.amnesiac) return;
  a.votes = a.last == last;
  a.amnesiac = !a.votes;
}

void ModelLog::commit() {
  std::array<std::uint64_t, kReplicasMost> held{};
  unsigned count = 0;
  for (const Acceptor& a : acceptors_) {
    if (a.votes) held[count++] = a.process && a.streaming && !a.amnesiac ? a.last : 0;
  }
  std::sort(held.begin(), held.begin() + count, std::greater<>());
  committed_ = std::max(committed_, held[count / 2]);
}

std::uint64_t ModelLog::propose(unsigned id, LogEntry entry) {
  if (leader_ != id || !acceptors_[id].runs || !has_room(acceptors_[id])) return 0;
  entry.view = view_;
  entries_.push_back(std::move(entry));
  write(acceptors_[id], entries_.size());
  stream();
  commit();
  return entries_.size();
}

}  // namespace crane::replica::sim
