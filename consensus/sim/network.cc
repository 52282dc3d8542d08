// SPDX-License-Identifier: Apache-2.0
// The simulated fabric: one-sided operations on the virtual clock.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

namespace {

constexpr std::uint64_t kSlowNicMaxNs = 50'000'000;  // beyond that it is a cut

}  // namespace

std::uint64_t Cluster::delay() {
  Random& r = world_.random;
  if (r.chance(faults_.slow_per_mille)) return faults_.delay_max_ns + r.below(faults_.slow_max_ns);
  return r.between(faults_.delay_min_ns, faults_.delay_max_ns);
}

std::uint64_t Cluster::delay(unsigned from, unsigned to) {
  const std::uint64_t factor = std::max(nodes_[from].slow_factor, nodes_[to].slow_factor);
  const std::uint64_t once = delay();
  return std::max(once, std::min(once * factor, kSlowNicMaxNs));
}

bool Cluster::reachable(unsigned from, unsigned to) {
  return !link(from, to).cut && !link(from, to).refuses &&
         (nodes_[to].life != Life::kDown || faults_.dead_memory_reachable);
}

// The way back: a completion, in order per pair and plane; over a cut link it comes late and
// failed.
void Cluster::complete(unsigned from, unsigned to, Token token, bool ok, bool log_plane,
                       std::vector<std::byte> data) {
  Link& l = link(from, to);
  const bool back_ok = ok && !link(to, from).cut;
  const std::uint64_t timeout_ns = l.refuses ? 0 : faults_.timeout_ns;
  if (ok && !back_ok && log_plane) l.broken = true;  // it landed, but the writer will not learn it
  std::uint64_t at = world_.now_ns() + delay(from, to) / 2 + (back_ok ? 0 : timeout_ns);
  std::uint64_t& last = log_plane ? l.done_at_ns : l.cell_at_ns;
  if (log_plane || back_ok) {
    at = std::max(at, last + 1);
    last = at;
  }
  const std::uint32_t process = nodes_[from].process;
  world_.at(at, [this, from, to, process, token, back_ok, data = std::move(data)]() mutable {
    for_process(from, process, [this, from, to, token, back_ok, data = std::move(data)] {
      trace("replica %u op %llx %s", from, ull(token), back_ok ? "done" : "failed");
      core::Completion c;
      c.token = token;
      c.ok = back_ok;
      c.data = data;
      if (on_one_host() && is_stopped(to)) c.process = PeerProcess::kStopped;
      step(from, c);
    });
  });
}

Cluster::FlightPtr Cluster::new_flight() {
  std::unique_ptr<Flight> f;
  if (idle_flights_.empty()) {
    f = std::make_unique<Flight>();
  } else {
    f = std::move(idle_flights_.back());
    idle_flights_.pop_back();
  }
  return FlightPtr(f.release(), FlightRecycler{&idle_flights_});
}

void Cluster::write_log(unsigned from, const core::WriteLog& w) {
  FlightPtr f = new_flight();
  f->from = from;
  f->to = value(w.peer);
  Link& l = link(from, f->to);
  f->process = nodes_[from].process;
  f->connection = l.connection;
  f->key = static_cast<std::uint64_t>(w.key);
  f->offset = w.offset;
  f->token = w.token;
  const auto begin = nodes_[from].memory.begin() + static_cast<std::ptrdiff_t>(w.offset);
  f->bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(w.size));
  f->first = f->bytes.size();
  if (world_.random.chance(faults_.torn_per_mille)) f->first = world_.random.below(f->first);
  l.write_at_ns = std::max(world_.now_ns() + delay(from, f->to), l.write_at_ns + 1);
  world_.at(l.write_at_ns, [this, f = std::move(f)]() mutable { arrive(std::move(f)); });
}

void Cluster::arrive(FlightPtr f) {
  Link& l = link(f->from, f->to);
  if (l.torn) {
    l.waiting.push_back(
        std::move(f));  // FABRIC-F1: never overtakes the second part of an earlier write
    return;
  }
  const bool connected = l.connection == f->connection && !l.broken;
  const bool ok = connected && land(*f, 0, f->first);
  if (!ok || f->first == f->bytes.size()) return finish(*f, ok);
  l.torn = true;
  l.write_at_ns = std::max(world_.now_ns() + delay(), l.write_at_ns + 1);
  world_.at(l.write_at_ns, [this, f = std::move(f)]() mutable { finish_torn(std::move(f)); });
}

void Cluster::finish_torn(FlightPtr f) {
  Node& writer = nodes_[f->from];
  const bool gone = writer.process != f->process || writer.life == Life::kDown;
  if (!gone && writer.life == Life::kPaused) {
    // Stopped in mid-copy (U7).
    writer.stuck.emplace_back([this, f = std::move(f)]() mutable { finish_torn(std::move(f)); });
    return;
  }
  Link& l = link(f->from, f->to);
  l.torn = false;
  // Even a closed connection does not stop a copy under way: only the key does.
  if (!gone) finish(*f, land(*f, f->first, f->bytes.size()));  // else it stays incomplete
  while (!l.torn && !l.waiting.empty()) {
    FlightPtr next = std::move(l.waiting.front());
    l.waiting.pop_front();
    arrive(std::move(next));
  }
}

void Cluster::finish(const Flight& f, bool ok) {
  if (nodes_[f.from].process != f.process) return;
  Link& l = link(f.from, f.to);
  if (!ok && l.connection == f.connection) l.broken = true;  // FABRIC-F5
  complete(f.from, f.to, f.token, ok, true, {});
}

// The bytes reach the target's memory: the key decides now.
bool Cluster::land(const Flight& f, std::size_t begin, std::size_t end) {
  Node& target = nodes_[f.to];
  const Grant& grant = target.grants[f.from];
  const bool late_copy = options_.mutant == core::Mutant::kLateCopy && begin > 0;
  const bool live = (grant.live && grant.key == f.key) || late_copy;
  if (!live || !reachable(f.from, f.to)) {
    trace("%u -> %u write at %llu fails", f.from, f.to, ull(f.offset));
    return false;
  }
  if (!beyond_)
    violate(single_writer_.on_landed(f.from, f.to, View{target.cells[core::kPromiseCell][0]}));
  const auto at = static_cast<std::ptrdiff_t>(f.offset + begin);
  std::copy(f.bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            f.bytes.begin() + static_cast<std::ptrdiff_t>(end), target.memory.begin() + at);
  trace("%u -> %u lands %zu bytes at %llu", f.from, f.to, end - begin, ull(f.offset + begin));
  report_arrival(f.to);
  return true;
}

void Cluster::report_arrival(unsigned id) {
  Node& n = nodes_[id];
  if (n.arrival_reported || n.life == Life::kDown) return;
  n.arrival_reported = true;
  after(world_.random.below(faults_.notice_max_ns), id, [this, id] {
    nodes_[id].arrival_reported = false;
    step(id, core::LogArrived{});
  });
}

void Cluster::read_log(unsigned from, const core::ReadLog& r) {
  const unsigned to = value(r.peer);
  Link& l = link(from, to);
  const std::uint64_t at = std::max(world_.now_ns() + delay(from, to), l.write_at_ns + 1);
  l.write_at_ns = at;
  const std::uint32_t process = nodes_[from].process;
  world_.at(at, [this, from, to, r, process] {
    if (nodes_[from].process != process) return;
    std::vector<std::byte> data;
    const bool ok = reachable(from, to);
    if (ok) {
      const auto begin = nodes_[to].memory.begin() + static_cast<std::ptrdiff_t>(r.offset);
      data.assign(begin, begin + static_cast<std::ptrdiff_t>(r.size));
    }
    complete(from, to, r.token, ok, true, std::move(data));
  });
}

void Cluster::read_cell(unsigned from, const core::ReadCell& r) {
  const unsigned to = value(r.peer);
  const std::uint32_t process = nodes_[from].process;
  world_.after(delay(from, to), [this, from, to, r, process] {
    if (nodes_[from].process != process) return;
    std::vector<std::byte> data;
    const bool ok = reachable(from, to);
    if (ok) {
      data.resize(sizeof(core::Cell));
      std::memcpy(data.data(), nodes_[to].cells[r.cell].data(), data.size());
    }
    complete(from, to, r.token, ok, false, std::move(data));
  });
}

void Cluster::send(unsigned from, const core::SendMessage& s) {
  const unsigned to = value(s.peer);
  Link& l = link(from, to);
  const core::Message m = s.message;
  trace_message(from, to, m);
  const bool twice = world_.random.chance(faults_.duplicate_per_mille);
  for (int time = twice ? 0 : 1; time < 2; ++time) {
    std::uint64_t at = world_.now_ns() + delay(from, to);
    if (world_.random.chance(faults_.late_per_mille)) {
      at += world_.random.below(faults_.late_max_ns);
    }
    l.message_at_ns = std::max(at, l.message_at_ns + 1);
    message_at(l.message_at_ns, from, to, m);
  }
}

void Cluster::trace_message(unsigned from, unsigned to, const core::Message& m) {
  if (!trace_.is_enabled()) return;
  static constexpr const char* kNames[] = {"?",
                                           "requests a pre-vote from",
                                           "pre-votes for",
                                           "requests the log of",
                                           "grants its log to",
                                           "refuses",
                                           "hands over to",
                                           "reports its progress to",
                                           "reports stored entries to",
                                           "requests to join from",
                                           "refuses as a member",
                                           "refuses as too far behind",
                                           "requests missed entries of",
                                           "offers missed entries to",
                                           "has fetched what it missed, and reports it to",
                                           "misses entries that no store has, and reports it to"};
  const bool known = static_cast<std::size_t>(m.type) < std::size(kNames);
  // Progress messages are frequent; the others make up elections.
  const bool many = m.type == core::MessageType::kProgress || m.type == core::MessageType::kDurable;
  const auto how = many ? &Cluster::trace : &Cluster::trace_line;
  (this->*how)("replica %u %s %u, view %s; ends at %llu of %s, committed %llu, promised %s", from,
               kNames[known ? static_cast<std::size_t>(m.type) : 0], to, text(m.view).c_str(),
               ull(value(m.last.index)), text(m.last.view).c_str(), ull(value(m.commit.index)),
               text(m.promised).c_str());
}

void Cluster::message_at(std::uint64_t at, unsigned from, unsigned to, const core::Message& m) {
  world_.at(at, [this, from, to, m] {
    if (link(from, to).cut) return trace("%u -> %u message lost", from, to);
    for_process(to, nodes_[to].process, [this, from, to, m] {
      core::MessageArrived e;
      e.from = id_of(from);
      e.bytes = {reinterpret_cast<const std::byte*>(&m), sizeof m};
      step(to, e);
    });
  });
}

void Cluster::permit(unsigned id, unsigned writer) {
  const bool again = options_.mutant == core::Mutant::kReuseKey;
  nodes_[id].grants[writer] = {true, again ? writer + 1 : next_key_++};
  core::Permitted p;
  p.peer = id_of(writer);
  p.key = Key{nodes_[id].grants[writer].key};
  p.ok = true;
  trace_line("replica %u permits %u to write its log", id, writer);
  answer(id, p);
}

void Cluster::revoke(unsigned id, unsigned writer) {
  nodes_[id].grants[writer].live = false;
  core::Revoked r;
  r.peer = id_of(writer);
  trace_line("replica %u fences %u", id, writer);
  answer(id, r);
}

// The fabric's answer comes in the same pump, or later.
void Cluster::answer(unsigned id, const core::Event& event) {
  Node& n = nodes_[id];
  if (!world_.random.chance(faults_.async_fence_per_mille)) {
    n.answers.push_back(event);
    return;
  }
  after(delay(), id, [this, id, event] { step(id, event); });
}

}  // namespace crane::consensus::sim
