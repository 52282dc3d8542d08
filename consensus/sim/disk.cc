// SPDX-License-Identifier: Apache-2.0
// Disks of a simulated group: transactions that take time, processes killed in the middle of one,
// losses of power (of one machine, or all at once) that lose the memory and unsynced bytes, and
// damaged stores.
#include <algorithm>
#include <cstring>

#include "consensus/sim/cluster.h"
#include "consensus/store/recovery.h"

namespace crane::consensus::sim {
namespace {

template <typename T>
void must(const Result<T>& result) {
  CRANE_ASSERT(result.ok());
}

}  // namespace

// The start of a node in disk mode (consensus/driver/open_disk.cc).
void Cluster::begin_disk(unsigned id, core::Start& start,
                         std::optional<core::Checkpoint>& checkpoint) {
  Node& n = nodes_[id];
  const core::Config& c = n.core->config();
  n.jobs.clear();
  if (options_.mutant == core::Mutant::kVoteWithShortLog) n.disk.mark = 0;
  if (std::exchange(n.no_disk, false)) n.disk = {};
  n.store = std::make_unique<store::MemStore>(n.disk);
  store::Memory m;
  m.survived = !std::exchange(n.no_memory, false) && start.kind == core::StartKind::kSurvived;
  m.promise = n.cells[core::kPromiseCell];
  m.log = n.memory;
  m.ring_bytes = c.ring_bytes;
  m.payload_bytes_max = c.payload_bytes_max;
  const core::Checkpoint* place = checkpoint ? &*checkpoint : nullptr;
  auto recovered = store::recover(*n.store, m, c.log_id, n.process > 1, place);
  if (!recovered && recovered.error().code == Code::kGone) {  // the store was cut
    ++outcome_.refusals;
    checkpoint = checkpoint_reaching(id);
    if (!checkpoint) return;
    n.server_position = checkpoint->at;
    no_gap_.on_restored(id, checkpoint->at.last.index);
    recovered = store::recover(*n.store, m, c.log_id, n.process > 1, &*checkpoint);
  }
  CRANE_ASSERT(recovered.ok());
  const core::Cursor begin = checkpoint ? checkpoint->at : core::Cursor{};
  const store::Recovered& r = recovered.value();
  if (r.start.kind == core::StartKind::kLost) {
    const bool known = start.kind == core::StartKind::kLost;  // damaged, or another machine
    if (!known && options_.mutant != core::Mutant::kVoteWithShortLog) violate("STORE: " + r.why);
    must(n.store->reset_at({c.log_id, c.incarnation}, begin, {}));
    start = r.start;
    return;
  }
  if (r.incarnation == 0) {
    must(n.store->reset_at({c.log_id, c.incarnation}, begin, {}));
  }
  start = r.start;
  if (!m.survived || checkpoint) replay(id, next(begin.last.index), r.replay_to);
}

// A new server gets all entries; a restored one those after its checkpoint.
void Cluster::replay(unsigned id, Index from, Index upto) {
  Node& n = nodes_[id];
  trace("replica %u replays up to %llu of %llu stored", id, ull(value(upto)),
        ull(value(n.store->state().last.last.index)));
  std::vector<std::byte> bytes;
  for (Index at = from; at <= upto;) {
    bytes.clear();
    const auto behind = n.store->read(at, 1, bytes);
    if (!behind) return violate("STORE: a committed entry cannot be read");
    core::EntryHeader h;
    std::memcpy(static_cast<void*>(&h), bytes.data(), sizeof h);
    check_delivered(id, {{View{h.view}, Index{h.index}},
                         h.type,
                         h.grant,
                         h.stamp_ns,
                         h.pos,
                         std::span(bytes).subspan(core::kHeaderBytes, h.length)});
    at = behind.value();
  }
}

void Cluster::submit(unsigned id, DiskJob job) {
  nodes_[id].jobs.push_back(std::move(job));
  if (nodes_[id].jobs.size() == 1) run_disk(id);
}

void Cluster::run_disk(unsigned id) {
  Random& r = world_.random;
  const bool slow = r.chance(faults_.slow_sync_per_mille);
  const std::uint64_t time = r.between(faults_.sync_min_ns, faults_.sync_max_ns) +
                             (slow ? r.below(faults_.slow_sync_max_ns) : 0);
  after(time, id, [this, id] { finish_disk(id); });
}

void Cluster::finish_disk(unsigned id) {
  Node& n = nodes_[id];
  const DiskJob job = std::move(n.jobs.front());
  n.jobs.pop_front();
  if (!n.jobs.empty()) run_disk(id);
  if (job.promise != View{0}) {
    must(n.store->promise(job.promise));
    return step(id, core::PromiseStored{job.promise});
  }
  if (job.fetch.sequence != 0) return finish_fetch(id, job.fetch);
  if (job.drop != Index{0}) {
    must(n.store->drop_below(next(job.drop)));
    return;
  }
  const core::StoreEntries& e = job.entries;
  const auto last = n.store->append({e.from_pos, e.before}, job.bytes, {e.commit_pos, e.commit});
  CRANE_ASSERT(last.ok());
  trace("replica %u stored %llu..%llu of view %llu", id, ull(value(e.before.index) + 1),
        ull(value(last.value().last.index)), ull(value(last.value().last.view)));
  step(id, core::Stored{e.sequence, last.value().last, last.value().pos});
}

void Cluster::finish_fetch(unsigned id, const core::FetchEntries& fetch) {
  std::vector<std::byte> bytes;
  const auto behind = nodes_[id].store->read(fetch.first, fetch.bytes_max, bytes);
  CRANE_ASSERT(behind.ok() || behind.error().code == Code::kNotFound);
  trace("replica %u read %zu bytes from %llu on for a peer", id, bytes.size(),
        ull(value(fetch.first)));
  step(id, core::Fetched{fetch.sequence, bytes});
}

// The transaction under way is done without an answer, is only in the disk's cache, or was not
// begun.
void Cluster::crash_disk(unsigned id) {
  Node& n = nodes_[id];
  if (n.jobs.empty() || n.lost) return;
  const DiskJob job = std::move(n.jobs.front());
  n.jobs.clear();
  const std::uint64_t how = world_.random.below(3);
  if (how == 0) return;
  if (job.fetch.sequence != 0) return;
  if (job.drop != Index{0}) {
    must(n.store->drop_below(next(job.drop)));
    return;
  }
  if (job.promise != View{0}) {
    must(n.store->promise(job.promise));
    return;
  }
  const core::Cursor from{job.entries.from_pos, job.entries.before};
  const core::Cursor commit{job.entries.commit_pos, job.entries.commit};
  if (how == 1) {
    must(n.store->append(from, job.bytes, commit));
  } else {
    n.store->test_only_cut_short(from, job.bytes, commit);
  }
}

void Cluster::lose_power(unsigned id) {
  Node& n = nodes_[id];
  if (n.life != Life::kDown) crash(id);
  trace("replica %u loses its power", id);
  n.no_memory = true;
  wipe(n);
  n.disk.lose_power([this] { return world_.random.next(); });
  n.store = std::make_unique<store::MemStore>(n.disk);
}

// True if the incident was one of these.
bool Cluster::lose_power_sometimes(std::uint64_t& pick, unsigned id, std::uint64_t length) {
  if (pick >= faults_.power_weight + faults_.blackout_weight) {
    pick -= faults_.power_weight + faults_.blackout_weight;
    return false;
  }
  if (pick >= faults_.power_weight) {
    trace_line("blackout");
    for (unsigned i = 0; i < faults_.replicas; ++i) {
      if (nodes_[i].lost) continue;
      lose_power(i);
      world_.after(world_.random.below(length), [this, i] { restart(i); });
    }
    return true;
  }
  Node& n = nodes_[id];
  if (n.lost) return true;
  lose_power(id);
  const bool rots = lost_count_ < faults_.lost_max && n.disk.mark > 0 &&
                    outcome_.views >= faults_.views_min &&
                    world_.random.chance(faults_.rot_per_mille) && may_lose(id);
  if (rots) {
    trace_line("replica %u: the store is damaged", id);
    n.disk.rot(world_.random.next());
    if (options_.mutant == core::Mutant::kVoteWithShortLog) {
      ++lost_count_;
    } else {
      if (store::MemStore(n.disk).state().damage.empty()) violate("STORE: damage is not noticed");
      lose_memory(id);
    }
  }
  world_.after(length, [this, id] { restart(id); });
  return true;
}

// Number of voters whose stores hold this very entry (a voter that lost its store once held it).
unsigned Cluster::holders_on_disk(const core::Entry& entry, const core::Members& voters) {
  unsigned count = 0;
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    if (!voters.voter(id_of(i))) continue;
    const auto h = nodes_[i].store->header(entry.at.index);
    const bool holds = h && h.value().view == value(entry.at.view);
    if (holds || nodes_[i].incarnation != voters.incarnation(id_of(i))) ++count;
  }
  return count;
}

}  // namespace crane::consensus::sim
