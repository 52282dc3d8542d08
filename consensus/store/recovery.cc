// SPDX-License-Identifier: Apache-2.0
#include "consensus/store/recovery.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "dmt/base/assert.h"

namespace crane::consensus::store {

namespace {

using core::Cursor;

constexpr std::size_t kReadBytes = 1U << 20;

Recovered lost(std::string why) {
  Recovered r;
  r.start.kind = core::StartKind::kLost;
  r.why = std::move(why);
  return r;
}

// The oldest entry that is completely in the last ring_bytes of the log.
Result<Cursor> ring_begin(Store& store, std::uint64_t ring_bytes) {
  const State& s = store.state();
  const std::uint64_t oldest = s.last.pos > ring_bytes ? s.last.pos - ring_bytes : 0;
  std::uint64_t low = value(s.first.last.index);
  std::uint64_t high = value(s.last.last.index);
  while (low < high) {  // the first index after which the position is >= oldest
    const std::uint64_t middle = low + (high - low) / 2;
    const auto c = cursor_at(store, Index{middle});
    if (!c) return c.error();
    if (c.value().pos >= oldest) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return cursor_at(store, Index{low});
}

// Copies the tail of the stored log to its place in the ring; returns its beginning.
Result<Cursor> fill_ring(Store& store, const Memory& m, std::uint64_t log_id) {
  std::fill(m.log.begin(), m.log.end(), std::byte{0});
  core::LogRing ring(m.log, m.ring_bytes, log_id, m.payload_bytes_max);
  const auto begin = ring_begin(store, m.ring_bytes);
  if (!begin) return begin.error();
  std::uint64_t pos = begin.value().pos;
  Index at = next(begin.value().last.index);
  std::vector<std::byte> bytes;
  while (at <= store.state().last.last.index) {
    bytes.clear();
    const auto behind = store.read(at, std::min<std::size_t>(kReadBytes, m.ring_bytes), bytes);
    if (!behind) return behind.error();
    ring.put(pos, bytes);
    pos += bytes.size();
    at = behind.value();
  }
  CRANE_ASSERT(pos == store.state().last.pos);
  return begin;
}

// Restores the members in force at the commit index: their entry is part of the log, but may have
// left the ring long ago.  False: the list is damaged; kGone: neither the store nor the checkpoint
// reaches back to it.
Result<bool> restore_members(Store& store, const Memory& m, std::uint64_t log_id,
                             const core::Checkpoint* c) {
  const State& s = store.state();
  core::LogRing ring(m.log, m.ring_bytes, log_id, m.payload_bytes_max);
  const Index known = c == nullptr ? Index{} : std::max(c->at.last.index, c->config.at.index);
  const Index begin = std::max(known, s.first.last.index);
  for (std::uint64_t at = value(s.commit.last.index); at > value(begin); --at) {
    const auto h = store.header(Index{at});
    if (!h) return h.error();
    if (h.value().type != core::kConfig) continue;
    std::vector<std::byte> bytes;
    const auto read = store.read(Index{at}, 1, bytes);
    if (!read) return read.error();
    const auto payload = std::span<const std::byte>(bytes).subspan(core::kHeaderBytes);
    const auto members = core::Members::decode(payload.first(h.value().length));
    if (!members) return false;
    ring.save_config({{View{h.value().view}, Index{at}}, *members});
    return true;
  }
  if (known < s.first.last.index) {  // another list may be between them
    return Error{Code::kGone, 0,
                 "neither the store nor the checkpoint contains the list of members"};
  }
  if (value(known) > 0) ring.save_config(c->config);
  return true;  // the first members, if the log has no CONFIG at all
}

// The replica keeps its identity, and its log begins at the checkpoint.
Result<Recovered> begin_at(Store& store, const Memory& m, std::uint64_t log_id, View promised,
                           const core::Checkpoint& c) {
  const Identity identity = store.state().identity;
  const View promise = std::max(promised, c.view);
  core::LogRing ring(m.log, m.ring_bytes, log_id, m.payload_bytes_max);
  const auto saved = ring.saved_config();
  if (!saved || saved->at < c.config.at) ring.save_config(c.config);
  if (const Outcome made = store.reset_at(identity, c.at, promise); !made) return made.error();
  Recovered r;
  r.incarnation = identity.incarnation;
  r.starts_again = true;
  r.start.kind = core::StartKind::kSurvived;
  r.start.promise = {value(promise),       c.at.pos, value(c.at.last.index), value(c.at.last.view),
                     identity.incarnation, c.at.pos};
  r.start.stored_promise = promise;
  r.replay_to = c.at.last.index;
  return r;
}

Result<Recovered> from_store_alone(Store& store, const Memory& m, std::uint64_t log_id,
                                   const core::Checkpoint* c) {
  const State& s = store.state();
  const auto begin = fill_ring(store, m, log_id);
  if (!begin) return lost("the store cannot be read");
  if (begin.value().last.index > s.commit.last.index) {
    return lost("the store has more uncommitted entries than a ring can hold");
  }
  const auto members = restore_members(store, m, log_id, c);
  if (!members && members.error().code == Code::kGone) return members.error();
  if (!members || !members.value()) return lost("the store's list of members is damaged");
  Recovered r;
  r.incarnation = s.identity.incarnation;
  r.start.kind = core::StartKind::kSurvived;
  r.start.promise = {value(s.promise),          s.commit.pos,           value(s.commit.last.index),
                     value(s.commit.last.view), s.identity.incarnation, begin.value().pos};
  r.replay_to = s.commit.last.index;
  return r;
}

}  // namespace

Result<Cursor> cursor_at(Store& store, Index index) {
  const State& s = store.state();
  if (index == s.first.last.index) return s.first;
  const auto h = store.header(index);
  if (!h) return h.error();
  return core::LogRing::after(h.value());
}

Result<Recovered> recover(Store& store, const Memory& m, std::uint64_t log_id, bool was_member,
                          const core::Checkpoint* c, bool acceptor_only) {
  const State& s = store.state();
  if (!s.damage.empty()) return lost(s.damage);
  const bool remembers = m.survived && m.promise[core::kIncarnation] != 0;
  if (s.identity.incarnation == 0) {
    if (remembers || was_member) return lost("the store is empty, but this replica was a member");
    return Recovered{};
  }
  if (s.identity.log_id != log_id) {
    return Error{Code::kBadArgument, 0, "the store belongs to another group"};
  }
  const Index place = c == nullptr ? Index{} : c->at.last.index;
  const bool reaches = place >= s.first.last.index;
  if (!reaches && !acceptor_only) {
    return Error{Code::kGone, 0, "the checkpoint is older than what the store still holds"};
  }
  bool ends_before = place > s.last.last.index;  // or holds another entry there, never committed
  if (!ends_before && reaches && c != nullptr) {
    const auto held = cursor_at(store, place);
    if (!held) return lost("the store cannot be read");
    if (held.value() != c->at && place <= s.commit.last.index) {
      return Error{Code::kBadArgument, 0, "the checkpoint belongs to another log"};
    }
    ends_before = held.value() != c->at;
  }
  const Viewstamp anchor{View{m.promise[core::kLowWaterView]},
                         Index{m.promise[core::kLowWaterIndex]}};
  const bool own = remembers && m.promise[core::kIncarnation] == s.identity.incarnation;
  Recovered r;
  if (ends_before) {
    if (!own) std::fill(m.log.begin(), m.log.end(), std::byte{0});
    const View promised{own ? m.promise[core::kPromisedView] : 0};
    return begin_at(store, m, log_id, std::max(promised, s.promise), *c);
  }
  if (own && anchor.index >= s.first.last.index) {
    // CORE-D4: entries that the memory marks as consumed are in the store, or the store lost its
    // end (U8).
    const auto held = cursor_at(store, anchor.index);
    if (!held || held.value().last != anchor) {
      return lost("the store ends before the entries that this replica's memory marks as stored");
    }
    r.start.kind = core::StartKind::kSurvived;
    r.start.promise = m.promise;
    r.start.promise[core::kPromisedView] =
        std::max(m.promise[core::kPromisedView], value(s.promise));
    r.incarnation = s.identity.incarnation;
    r.replay_to = anchor.index;
  } else {
    auto rebuilt = from_store_alone(store, m, log_id, c);
    if (!rebuilt || rebuilt.value().start.kind == core::StartKind::kLost) return rebuilt;
    r = std::move(rebuilt).value();
  }
  r.start.stored_promise = s.promise;
  return r;
}

Outcome take_place(Store& store, std::uint64_t log_id, ReplicaId self, bool was_member,
                   const core::Checkpoint& checkpoint) {
  const core::Members& members = checkpoint.config.members;
  const std::uint32_t incarnation = members.incarnation(self);
  const State& s = store.state();
  const bool is_new = s.damage.empty() && s.identity.incarnation == 0 && !was_member;
  if (!is_new || !members.admits(self, incarnation)) return Done{};
  return store.reset_at({log_id, incarnation}, {}, {});
}

namespace {

Result<LogTailReader> open_tail(const std::string& path) {
  auto source = tail_of_file(path);
  if (!source) return source.error();
  return LogTailReader::open(std::move(source).value());
}

// Reads the whole file; returns the newest list of members in it, or `known`.
Result<core::ConfigAt> newest_members(LogTailReader& tail, const core::ConfigAt& known) {
  core::ConfigAt newest = known;
  for (;;) {
    const auto piece = tail.next();
    if (!piece) return piece.error();
    if (piece.value().empty()) return newest;
    for (auto rest = piece.value(); !rest.empty();) {
      core::EntryHeader h;
      std::memcpy(static_cast<void*>(&h), rest.data(), sizeof h);
      const auto members = core::Members::decode(rest.subspan(core::kHeaderBytes, h.length));
      if (h.type == core::kConfig && !members) {
        return failure(Code::kDamaged, "read the log of a backup",
                       "entry " + std::to_string(h.index) + " is not a list of members");
      }
      const Viewstamp at{View{h.view}, Index{h.index}};
      if (h.type == core::kConfig && at.index > newest.at.index) newest = {at, *members};
      rest = rest.subspan(core::entry_bytes(h.length));
    }
  }
}

// Reads the file again from its beginning; entries that the store already holds stay.
Outcome store_tail(Store& store, const std::string& path) {
  auto tail = open_tail(path);
  if (!tail) return tail.error();
  const LogTail& all = tail.value().tail();
  core::Cursor at{all.begin.pos, all.begin.at};
  const core::Cursor end{all.end.pos, all.end.at};
  for (;;) {
    const auto piece = tail.value().next();
    if (!piece) return piece.error();
    if (piece.value().empty()) return Done{};
    const auto stored = store.append(at, piece.value(), end);
    if (!stored) return stored.error();
    at = stored.value();
  }
}

}  // namespace

Outcome take_place_with(const std::string& path, Store& store, std::uint64_t log_id, ReplicaId self,
                        bool was_member, const core::Checkpoint& checkpoint) {
  auto tail = open_tail(path);
  if (!tail) return tail.error();
  const LogTail all = tail.value().tail();
  if (all.log_id != log_id) {
    return failure(Code::kDamaged, "read the log of a backup", "it belongs to another group");
  }
  const auto config = newest_members(tail.value(), checkpoint.config);
  if (!config) return config.error();
  const core::Members& members = config.value().members;
  const Identity identity{log_id, members.incarnation(self)};
  if (was_member || !members.admits(self, identity.incarnation)) return Done{};
  const State& s = store.state();
  const core::Cursor begin{all.begin.pos, all.begin.at};
  if (s.damage.empty() && s.identity.incarnation == 0) {
    const View promise = std::max(checkpoint.view, all.end.at.view);
    if (const Outcome made = store.reset_at(identity, begin, promise); !made) return made;
  } else if (!s.damage.empty() || s.identity != identity || s.first != begin) {
    return Done{};  // recover() reports the reason
  }
  return store_tail(store, path);
}

}  // namespace crane::consensus::store
