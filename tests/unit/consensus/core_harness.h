// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of cores on instant memory: every operation completes in the same pump, and fails only if
// the test makes it fail.  For tests of single steps; worlds with faults are in tests/sim.

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "consensus/core/replica.h"

namespace crane::consensus::core {

// For tests, which use the names of the core.
using consensus::ElectionCause;
using consensus::Key;
using consensus::MemberRole;
using consensus::Role;
using consensus::Token;

class InstantGroup {
 public:
  struct Node {
    std::vector<std::byte> memory;
    std::array<Cell, 3> cells{};
    bool slow_disk = false;  // stores wait for finish_stores()
    std::vector<View> promises;
    std::vector<StoreEntries> stores;
    std::map<std::uint64_t, std::vector<std::byte>> held;  // entries in the store, by index
    Index dropped{};                                       // entries up to here were dropped from
                                                           // the store
    unsigned served = 0;                                   // reads of the store for a peer
    std::vector<std::byte> for_peer;
    std::vector<std::uint64_t> keys;  // by writer; 0: none
    std::unique_ptr<Replica> core;
    std::deque<Event> events;
    std::deque<std::pair<ReplicaId, Message>> mail;
    std::deque<std::pair<Completion, std::vector<std::byte>>> completions;
    std::vector<Entry> delivered;
    std::vector<RoleChange> roles;
    std::string fatal;
    std::uint32_t incarnation = kFirstIncarnation;
    bool cut = false;       // nothing reaches it, nothing leaves it
    bool stopped = false;   // its process is stopped, and the others see that; its memory can be
                            // read
    bool stalled = false;   // its application takes no entries
    bool analysis = false;  // an analysis replica
    bool late = false;      // writes to it land, and their completions wait for release()
    std::vector<Completion> waiting;
    unsigned closed = 0;  // CloseLogs that it emitted
  };

  explicit InstantGroup(std::uint8_t replicas, std::uint64_t ring = 1U << 16) {
    config.replicas = replicas;
    config.ring_bytes = ring;
    config.payload_bytes_max = 1024;
    config.log_id = 0x1234567;
    nodes.resize(replicas);
    for (Node& n : nodes) {
      n.memory.resize(log_memory_bytes(ring));
      n.keys.resize(replicas);
    }
  }

  void start(unsigned id, StartKind kind = StartKind::kNew,
             const Checkpoint* checkpoint = nullptr) {
    Config c = config;
    c.self = ReplicaId{static_cast<std::uint8_t>(id)};
    Node& n = nodes[id];
    c.incarnation = n.incarnation;
    c.analysis = n.analysis;
    n.core = std::make_unique<Replica>(c, n.memory);
    Start event;
    event.kind = kind;
    event.promise = n.cells[kPromiseCell];
    event.checkpoint = checkpoint;
    step(id, event);
  }
  // Its process dies; its pending answers are lost.
  void stop(unsigned id) {
    Node& n = nodes[id];
    n.core.reset();
    n.events.clear();
    n.mail.clear();
    n.completions.clear();
    n.delivered.clear();
    for (unsigned i = 0; i < nodes.size(); ++i) {
      if (nodes[i].core) step(i, PeerDown{ReplicaId{static_cast<std::uint8_t>(id)}});
    }
  }
  // Its server is restored from a checkpoint.
  void restart(unsigned id, StartKind kind, const Checkpoint* checkpoint) {
    start(id, kind, checkpoint);
    for (unsigned i = 0; i < nodes.size(); ++i) {
      if (i != id && nodes[i].core) step(i, PeerUp{ReplicaId{static_cast<std::uint8_t>(id)}});
    }
    settle();
  }
  // A checkpoint of the entries that `id` has delivered.
  Checkpoint take_checkpoint(unsigned id) const {
    const Node& n = nodes[id];
    const Entry& e = n.delivered.back();
    return {{e.pos + entry_bytes(e.payload.size()), e.at},
            n.core->promised_view(),
            n.core->committed_config()};
  }
  // Simulates a reboot of a replica that is not running.
  void lose_memory(unsigned id) {
    Node& n = nodes[id];
    n.core.reset();
    std::fill(n.memory.begin(), n.memory.end(), std::byte{0});
    std::fill(n.keys.begin(), n.keys.end(), 0);
    n.cells = {};
    ++n.incarnation;
  }
  // From now on it runs as an analysis replica.
  void start_analysis(unsigned id) {
    stop(id);
    lose_memory(id);
    nodes[id].analysis = true;
    restart(id, StartKind::kLost, nullptr);
  }
  Result<Index> change(unsigned leader, MemberChange::Kind kind, unsigned id) {
    const auto index = nodes[leader].core->change_members(
        {kind, ReplicaId{static_cast<std::uint8_t>(id)}}, {now_ns, 0});
    carry_out(leader);
    settle();
    return index;
  }
  void start_all() {
    for (unsigned i = 0; i < nodes.size(); ++i) start(i);
    settle();
  }

  void step(unsigned id, const Event& event) {
    nodes[id].core->step(event, {now_ns, 0});
    carry_out(id);
  }
  // Kills it and reports its death to all other replicas.
  void kill(unsigned id) {
    nodes[id].core.reset();
    for (unsigned i = 0; i < nodes.size(); ++i) {
      if (nodes[i].core) step(i, PeerDown{ReplicaId{static_cast<std::uint8_t>(id)}});
    }
  }
  Result<Index> propose(unsigned id, std::size_t bytes = 8) {
    const std::vector<std::byte> payload(bytes, std::byte{0x5a});
    Proposal p;
    p.type = 7;
    p.grant = 9;
    p.stamp_ns = now_ns;
    p.payload = payload;
    const auto index = nodes[id].core->propose(p, {now_ns, 0});
    carry_out(id);
    settle();
    return index;
  }
  // Lets time pass, in steps of a millisecond.
  void run_for(std::uint64_t ns) {
    for (const std::uint64_t end = now_ns + ns; now_ns < end; now_ns += 1'000'000) {
      for (unsigned i = 0; i < nodes.size(); ++i) {
        const Node& n = nodes[i];
        if (n.core && !n.stopped && n.core->deadline_ns() <= now_ns) step(i, Tick{});
      }
      settle();
    }
  }
  // Delivers messages and completions until there are none.
  void settle() {
    for (bool any = true; any;) {
      any = false;
      for (unsigned i = 0; i < nodes.size(); ++i) {
        Node& n = nodes[i];
        if (!n.core || n.stopped) continue;
        while (!n.completions.empty()) {
          auto [c, data] = std::move(n.completions.front());
          n.completions.pop_front();
          c.data = data;
          step(i, c);
          any = true;
        }
        while (!n.mail.empty()) {
          const auto [from, m] = n.mail.front();
          n.mail.pop_front();
          step(i, MessageArrived{from, std::as_bytes(std::span(&m, 1))});
          any = true;
        }
        while (!n.events.empty()) {
          const Event e = n.events.front();
          n.events.pop_front();
          step(i, e);
          any = true;
        }
      }
    }
  }
  // The disk of `id` finishes all its jobs.
  void finish_stores(unsigned id) {
    Node& n = nodes[id];
    for (const View v : std::exchange(n.promises, {})) n.events.push_back(PromiseStored{v});
    for (const StoreEntries& e : std::exchange(n.stores, {})) {
      n.events.push_back(Stored{e.sequence, e.last, e.to_pos});
    }
  }
  // The late writes of `id` complete.
  void release(unsigned id) {
    Node& n = nodes[id];
    for (const Completion& c : std::exchange(n.waiting, {})) n.completions.push_back({c, {}});
    settle();
  }
  void flush(unsigned id) {
    step(id, Flush{});
    settle();
  }
  int leader() const {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].core && nodes[i].core->role() == Role::kLeader) return static_cast<int>(i);
    }
    return -1;
  }

  Config config;
  std::vector<Node> nodes;
  std::uint64_t now_ns = 1;
  std::uint64_t next_key = 1;

 private:
  static void keep(Node& n, const StoreEntries& e) {
    n.held.erase(n.held.upper_bound(value(e.before.index)), n.held.end());
    for (std::uint64_t pos = e.from_pos; pos < e.to_pos;) {
      const EntryHeader h = n.core->ring().header_at(pos);
      std::vector<std::byte> bytes(entry_bytes(h.length));
      n.core->ring().copy_out(pos, bytes);
      pos += bytes.size();
      n.held[h.index] = std::move(bytes);
    }
  }
  void carry_out(unsigned id) {
    Node& n = nodes[id];
    ActionList list;
    while (n.core->take_actions(list)) {
      for (const Action& a : list) std::visit([&](const auto& x) { carry_out(id, x); }, a);
    }
    if (n.stalled) return;
    while (const auto e = n.core->deliver()) n.delivered.push_back(*e);
  }
  bool reach(unsigned a, unsigned b) const {
    return !nodes[a].cut && !nodes[b].cut && nodes[b].core != nullptr;
  }
  void carry_out(unsigned id, const WriteLog& w) {
    Node& t = nodes[value(w.peer)];
    const auto key = static_cast<std::uint64_t>(w.key);
    const bool ok = reach(id, value(w.peer)) && key != 0 && t.keys[id] == key;
    if (ok) {
      std::memcpy(t.memory.data() + w.offset, nodes[id].memory.data() + w.offset, w.size);
      t.events.push_back(LogArrived{});
    }
    const Completion c{w.token, ok, {}};
    if (t.late) return nodes[id].waiting.push_back(c);
    nodes[id].completions.push_back({c, {}});
  }
  void carry_out(unsigned id, const ReadLog& r) {
    const Node& t = nodes[value(r.peer)];
    const bool ok = reach(id, value(r.peer));
    std::vector<std::byte> data;
    if (ok) data.assign(t.memory.data() + r.offset, t.memory.data() + r.offset + r.size);
    nodes[id].completions.push_back({Completion{r.token, ok, {}}, std::move(data)});
  }
  void carry_out(unsigned id, const ReadCell& r) {
    const Node& t = nodes[value(r.peer)];
    const bool ok = reach(id, value(r.peer));
    std::vector<std::byte> data(ok ? sizeof(Cell) : 0);
    if (ok) std::memcpy(data.data(), t.cells[r.cell].data(), sizeof(Cell));
    const auto seen = t.stopped ? PeerProcess::kStopped : PeerProcess::kUnknown;
    nodes[id].completions.push_back({Completion{r.token, ok, {}, seen}, std::move(data)});
  }
  void carry_out(unsigned id, const CloseLog&) { ++nodes[id].closed; }
  void carry_out(unsigned id, const SetCell& c) { nodes[id].cells[c.cell] = c.value; }
  void carry_out(unsigned id, const SendMessage& s) {
    if (!reach(id, value(s.peer))) return;
    nodes[value(s.peer)].mail.push_back({ReplicaId{static_cast<std::uint8_t>(id)}, s.message});
  }
  void carry_out(unsigned id, const PermitWrites& p) {
    nodes[id].keys[value(p.peer)] = next_key++;
    nodes[id].events.push_back(Permitted{p.peer, Key{nodes[id].keys[value(p.peer)]}, true});
  }
  void carry_out(unsigned id, const RevokeWrites& r) {
    nodes[id].keys[value(r.peer)] = 0;
    nodes[id].events.push_back(Revoked{r.peer});
  }
  void carry_out(unsigned id, const StorePromise& p) {
    nodes[id].promises.push_back(p.view);
    if (!nodes[id].slow_disk) finish_stores(id);
  }
  void carry_out(unsigned id, const StoreEntries& e) {
    keep(nodes[id], e);
    nodes[id].stores.push_back(e);
    if (!nodes[id].slow_disk) finish_stores(id);
  }
  void carry_out(unsigned id, const FetchEntries& f) {
    Node& n = nodes[id];
    ++n.served;
    n.for_peer.clear();
    for (auto at = n.held.find(value(f.first)); at != n.held.end(); ++at) {
      const bool enough = n.for_peer.size() + at->second.size() > f.bytes_max;
      if (!n.for_peer.empty() && enough) break;
      n.for_peer.insert(n.for_peer.end(), at->second.begin(), at->second.end());
    }
    n.events.push_back(Fetched{f.sequence, n.for_peer});
  }
  void carry_out(unsigned id, const DropStored& d) {
    Node& n = nodes[id];
    n.dropped = d.upto;
    n.held.erase(n.held.begin(), n.held.upper_bound(value(d.upto)));
  }
  void carry_out(unsigned, const Committed&) {}
  void carry_out(unsigned, const MembersChange&) {}
  void carry_out(unsigned id, const RoleChange& r) { nodes[id].roles.push_back(r); }
  void carry_out(unsigned id, const Fatal& f) { nodes[id].fatal = f.why; }
};

}  // namespace crane::consensus::core
