// SPDX-License-Identifier: Apache-2.0
// The simulated fabric: one-sided operations on the virtual clock.
#include <algorithm>
#include <cstring>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

std::uint64_t Cluster::delay() {
  Random& r = world_.random;
  if (r.chance(faults_.slow_per_mille)) return r.between(faults_.delay_max_ns, faults_.slow_max_ns);
  return r.between(faults_.delay_min_ns, faults_.delay_max_ns);
}

bool Cluster::reachable(unsigned from, unsigned to) {
  return !link(from, to).cut &&
         (nodes_[to].life != Life::kDown || faults_.dead_memory_reachable);
}

// The way back: a completion, in order per pair and plane; late and failed over a cut link.
void Cluster::complete(unsigned from, unsigned to, core::Token token, bool ok, bool log_plane,
                       std::vector<std::byte> data) {
  Link& l = link(from, to);
  const bool back_ok = ok && !link(to, from).cut;
  if (ok && !back_ok && log_plane) l.broken = true;  // it landed, and the writer will not know
  std::uint64_t at = world_.now_ns() + delay() / 2 + (back_ok ? 0 : faults_.timeout_ns);
  std::uint64_t& last = log_plane ? l.done_at_ns : l.cell_at_ns;
  if (log_plane || back_ok) {
    at = std::max(at, last + 1);
    last = at;
  }
  const std::uint32_t process = nodes_[from].process;
  world_.at(at, [this, from, process, token, back_ok, data = std::move(data)]() mutable {
    for_process(from, process, [this, from, token, back_ok, data = std::move(data)] {
      core::Completion c;
      c.token = token;
      c.ok = back_ok;
      c.data = data;
      step(from, c);
    });
  });
}

void Cluster::write_log(unsigned from, const core::WriteLog& w) {
  const unsigned to = value(w.peer);
  Link& l = link(from, to);
  const auto begin = nodes_[from].memory.begin() + static_cast<std::ptrdiff_t>(w.offset);
  std::vector<std::byte> bytes(begin, begin + static_cast<std::ptrdiff_t>(w.size));
  const std::uint64_t at = std::max(world_.now_ns() + delay(), l.write_at_ns + 1);
  l.write_at_ns = at;
  const core::Token token = w.token;
  const std::uint32_t connection = l.connection;
  const auto key = static_cast<std::uint64_t>(w.key);
  const std::uint64_t offset = w.offset;
  const std::uint32_t process = nodes_[from].process;
  std::size_t first = bytes.size();
  if (world_.random.chance(faults_.torn_per_mille)) first = world_.random.below(bytes.size());
  auto finish = [this, from, to, token, connection, process](bool ok) {
    if (nodes_[from].process != process) return;
    Link& now = link(from, to);
    if (!ok && now.connection == connection) now.broken = true;
    complete(from, to, token, ok, true, {});
  };
  auto whole = std::move(bytes);
  world_.at(at, [this, from, to, key, connection, offset, first, process, token,
                 whole = std::move(whole), finish]() mutable {
    if (first == whole.size()) {
      land(from, to, key, connection, offset, std::move(whole), 0, finish);
      return;
    }
    std::vector<std::byte> head(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first));
    std::vector<std::byte> tail(whole.begin() + static_cast<std::ptrdiff_t>(first), whole.end());
    bool head_ok = false;
    land(from, to, key, connection, offset, std::move(head), 0, [&](bool ok) { head_ok = ok; });
    if (!head_ok) return finish(false);
    Link& now = link(from, to);
    const std::uint64_t later = std::max(world_.now_ns() + delay(), now.write_at_ns + 1);
    // What was posted behind it must not overtake its second part.
    now.write_at_ns = later;
    now.broken = true;
    world_.at(later, [this, from, to, key, connection, offset, first, process,
                      tail = std::move(tail), finish]() mutable {
      auto rest = [this, from, to, key, connection, offset, first, tail = std::move(tail), finish] {
        if (link(from, to).connection == connection) link(from, to).broken = false;
        land(from, to, key, connection, offset + first, tail, first, finish);
      };
      Node& writer = nodes_[from];
      if (writer.process != process || writer.life == Life::kDown) return;  // for ever half
      if (writer.life == Life::kPaused) {
        writer.stuck.push_back(std::move(rest));  // stopped in the middle of the copy (U7)
      } else {
        rest();
      }
    });
  });
}

// Bytes meet the target's memory: the key decides now.
void Cluster::land(unsigned from, unsigned to, std::uint64_t key, std::uint32_t connection,
                   std::uint64_t offset, std::vector<std::byte> bytes, std::size_t done,
                   std::function<void(bool)> finish) {
  Link& l = link(from, to);
  Node& target = nodes_[to];
  const bool live = target.grants[from].live && target.grants[from].key == key;
  const bool connected = done > 0 || (l.connection == connection && !l.broken);
  if (!reachable(from, to) || !live || !connected) {
    trace("%u -> %u write at %llu fails", from, to, static_cast<unsigned long long>(offset));
    return finish(false);
  }
  violate(single_writer_.on_landed(from, to, View{target.cells[core::kPromiseCell][0]}));
  std::copy(bytes.begin(), bytes.end(),
            target.memory.begin() + static_cast<std::ptrdiff_t>(offset));
  trace("%u -> %u lands %zu bytes at %llu", from, to, bytes.size(),
        static_cast<unsigned long long>(offset));
  tell_arrival(to);
  finish(true);
}

void Cluster::tell_arrival(unsigned id) {
  Node& n = nodes_[id];
  if (n.arrival_told || n.life == Life::kDown) return;
  n.arrival_told = true;
  const std::uint32_t process = n.process;
  world_.after(world_.random.below(20'000), [this, id, process] {
    for_process(id, process, [this, id] {
      nodes_[id].arrival_told = false;
      step(id, core::LogArrived{});
    });
  });
}

void Cluster::read_log(unsigned from, const core::ReadLog& r) {
  const unsigned to = value(r.peer);
  Link& l = link(from, to);
  const std::uint64_t at = std::max(world_.now_ns() + delay(), l.write_at_ns + 1);
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
  world_.after(delay(), [this, from, to, r, process] {
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
  const std::uint64_t at = std::max(world_.now_ns() + delay(), l.message_at_ns + 1);
  l.message_at_ns = at;
  const core::Message m = s.message;
  trace("%u -> %u message %d view %llu last %llu/%llu commit %llu promised %llu", from, to,
        static_cast<int>(m.type), static_cast<unsigned long long>(value(m.view)),
        static_cast<unsigned long long>(value(m.last.view)),
        static_cast<unsigned long long>(value(m.last.index)),
        static_cast<unsigned long long>(value(m.commit.index)),
        static_cast<unsigned long long>(value(m.promised)));
  const auto sender = ReplicaId{static_cast<std::uint8_t>(from)};
  world_.at(at, [this, from, to, m, sender] {
    if (link(from, to).cut) return;
    for_process(to, nodes_[to].process, [this, to, m, sender] {
      core::MessageArrived e;
      e.from = sender;
      e.bytes = {reinterpret_cast<const std::byte*>(&m), sizeof m};
      step(to, e);
    });
  });
}

void Cluster::permit(unsigned id, unsigned writer) {
  nodes_[id].grants[writer] = {true, next_key_++};
  core::Permitted p;
  p.peer = ReplicaId{static_cast<std::uint8_t>(writer)};
  p.key = core::Key{nodes_[id].grants[writer].key};
  p.ok = true;
  trace("replica %u permits %u", id, writer);
  answer(id, p);
}

void Cluster::revoke(unsigned id, unsigned writer) {
  nodes_[id].grants[writer].live = false;
  core::Revoked r;
  r.peer = ReplicaId{static_cast<std::uint8_t>(writer)};
  trace("replica %u revokes %u", id, writer);
  answer(id, r);
}

// The fabric's answer comes in the same pump, or later.
void Cluster::answer(unsigned id, const core::Event& event) {
  Node& n = nodes_[id];
  if (!world_.random.chance(faults_.async_fence_per_mille)) {
    n.answers.push_back(event);
    return;
  }
  const std::uint32_t process = n.process;
  world_.after(delay(), [this, id, process, event] {
    for_process(id, process, [this, id, event] { step(id, event); });
  });
}

}  // namespace crane::consensus::sim
