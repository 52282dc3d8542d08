// SPDX-License-Identifier: Apache-2.0
#include "eval/strategies/strategy.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"

namespace crane::eval {
namespace {

using consensus::Fabric;
using consensus::FabricEvent;
using consensus::Token;
using consensus::core::Cursor;
using consensus::core::EntryHeader;

constexpr View kView{1};  // there is one leader

// Token: tag (8 bits), kind (8), index (48).
constexpr unsigned kKindShift = 48;
constexpr unsigned kTagShift = 56;
constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kKindShift) - 1;

// Mu: a completed WRITE is all it takes.
class Mu final : public Strategy {
 public:
  Mu(Fabric& fabric, const Group& group, const Area& area, std::uint8_t tag)
      : Strategy(fabric, group, area, tag) {}

 private:
  void entry_completed(ReplicaId peer, Index index) override { hold(peer, index); }
};

// DARE: the tail pointer follows each completed entry; the commit pointer is lazy.
class Dare final : public Strategy {
 public:
  Dare(Fabric& fabric, const Group& group, const Area& area, std::uint8_t tag)
      : Strategy(fabric, group, area, tag), words_(group.replicas), acknowledged_(group.replicas) {}

 private:
  // The sources of pointer writes stay until these completed: one per write that may be under way.
  struct Words {
    std::array<std::uint64_t, 4 * kOutstandingMax> word{};
    std::size_t next = 0;
  };

  void point(ReplicaId peer, std::uint64_t offset, std::uint64_t position, Kind kind, Index index) {
    Words& w = words_[value(peer)];
    std::uint64_t& word = w.word[w.next++ % w.word.size()];
    word = position;
    write(peer, offset, std::as_bytes(std::span(&word, 1)), kind, index);
  }
  void send_commit(ReplicaId peer) {
    if (acknowledged_[value(peer)] >= committed_) return;
    acknowledged_[value(peer)] = committed_;
    point(peer, area_.pointers() + offsetof(Pointers, commit), end_pos_of(committed_),
          Kind::kCommit, committed_);
  }
  void entry_completed(ReplicaId peer, Index index) override {
    point(peer, area_.pointers() + offsetof(Pointers, tail), end_pos_of(index), Kind::kTail, index);
  }
  void pointer_completed(ReplicaId peer, Kind kind, Index index) override {
    if (kind == Kind::kTail) hold(peer, index);
  }
  void on_committed() override {
    for_peers([this](ReplicaId peer) {
      if (peers_[value(peer)].held >= committed_) send_commit(peer);
    });
  }

  std::vector<Words> words_;
  std::vector<Index> acknowledged_;
};

// APUS: a follower's reply in the own memory counts, not the completion.
class Apus final : public Strategy {
 public:
  Apus(Fabric& fabric, const Group& group, const Area& area, std::uint8_t tag)
      : Strategy(fabric, group, area, tag) {}

  void look() override {
    const auto memory = fabric_.log_memory();
    for_peers([&](ReplicaId peer) {
      Reply reply;
      std::memcpy(&reply, memory.data() + area_.reply(peer), sizeof reply);
      const bool news = reply.index > value(peers_[value(peer)].held);
      if (news && valid(reply, area_.log_id)) hold(peer, Index{reply.index});
    });
  }

 private:
  void entry_completed(ReplicaId, Index) override {}
};

}  // namespace

std::string_view name(Rule rule) noexcept {
  switch (rule) {
    case Rule::kMu:
      return "mu";
    case Rule::kDare:
      return "dare";
    case Rule::kApus:
      return "apus";
  }
  return "?";
}

Reply make_reply(Index index, std::uint64_t log_id) noexcept {
  Reply r{value(index), 0, 0};
  r.crc = crc32c(&r.index, sizeof r.index, static_cast<std::uint32_t>(log_id));
  return r;
}

bool valid(const Reply& reply, std::uint64_t log_id) noexcept {
  return reply.crc == make_reply(Index{reply.index}, log_id).crc;
}

consensus::core::LogRing ring_of(Fabric& fabric, const Area& area) {
  const auto memory = fabric.log_memory();
  CRANE_ASSERT(memory.size() >= area.offset + area.bytes());
  return {memory.subspan(area.offset, area.bytes()), area.ring_bytes, area.log_id,
          kStrategyPayloadMax};
}

std::unique_ptr<Strategy> Strategy::make(Rule rule, Fabric& fabric, const Group& group,
                                         const Area& area, std::uint8_t tag) {
  switch (rule) {
    case Rule::kMu:
      return std::make_unique<Mu>(fabric, group, area, tag);
    case Rule::kDare:
      return std::make_unique<Dare>(fabric, group, area, tag);
    case Rule::kApus:
      break;
  }
  return std::make_unique<Apus>(fabric, group, area, tag);
}

Strategy::Strategy(Fabric& fabric, const Group& group, const Area& area, std::uint8_t tag)
    : fabric_(fabric),
      group_(group),
      area_(area),
      tag_(tag),
      peers_(group.replicas),
      ring_(ring_of(fabric, area)),
      sorted_(group.replicas) {
  CRANE_ASSERT(group.keys.size() == group.replicas);
}

Index Strategy::propose(std::span<const std::byte> payload) {
  CRANE_ASSERT(outstanding() < kOutstandingMax && payload.size() <= kStrategyPayloadMax);
  const std::uint64_t pos = end_.pos;
  EntryHeader header;
  header.view = value(kView);
  header.prev_view = value(end_.last.view);
  header.commit = value(committed_);
  header.type = 1;
  header.index = value(end_.last.index) + 1;
  ring_.append(end_, header, payload);
  const Index index = end_.last.index;
  end_pos_[value(index) % end_pos_.size()] = end_.pos;
  peers_[value(group_.self)].held = index;

  const auto memory = std::span<const std::byte>(fabric_.log_memory());
  const std::uint64_t size = end_.pos - pos;
  const std::uint64_t first = std::min(size, ring_.contiguous(pos));
  const auto head = memory.subspan(area_.offset + ring_.offset(pos), first);
  const auto rest = memory.subspan(area_.offset, size - first);
  for_peers([&](ReplicaId peer) {
    const std::uint64_t at = area_.offset + ring_.offset(pos);
    write(peer, at, head, rest.empty() ? Kind::kEntry : Kind::kPart, index);
    if (!rest.empty()) write(peer, area_.offset, rest, Kind::kEntry, index);
  });
  if (group_.replicas == 1) count();
  return index;
}

void Strategy::write(ReplicaId peer, std::uint64_t offset, std::span<const std::byte> bytes,
                     Kind kind, Index index) {
  const std::uint64_t token = (std::uint64_t{tag_} << kTagShift) |
                              (static_cast<std::uint64_t>(kind) << kKindShift) | value(index);
  fabric_.write(peer, group_.keys[value(peer)], offset, bytes, Token{token});
}

void Strategy::on_event(const FabricEvent& event) {
  if (event.kind != FabricEvent::Kind::kCompletion) return;
  const std::uint64_t token = value(event.token);
  if (token >> kTagShift != tag_) return;
  if (!event.ok) {
    peers_[value(event.peer)].failed = true;  // FABRIC-F5: nothing of it comes any more
    return;
  }
  const auto kind = static_cast<Kind>((token >> kKindShift) & 0xff);
  const Index index{token & kIndexMask};
  if (kind == Kind::kEntry) {
    entry_completed(event.peer, index);
  } else if (kind != Kind::kPart) {
    pointer_completed(event.peer, kind, index);
  }
}

void Strategy::pointer_completed(ReplicaId, Kind, Index) {}

void Strategy::hold(ReplicaId peer, Index index) {
  PeerState& p = peers_[value(peer)];
  CRANE_ASSERT(index <= end_.last.index);
  if (index <= p.held) return;
  p.held = index;
  if (index > committed_) count();
}

// STRATEGY-1: the majority's position is what the group's q-th best replica holds.
void Strategy::count() {
  std::transform(peers_.begin(), peers_.end(), sorted_.begin(),
                 [](const PeerState& p) { return value(p.held); });
  const auto nth = sorted_.begin() + (group_.majority() - 1);
  std::nth_element(sorted_.begin(), nth, sorted_.end(), std::greater<>());
  if (*nth <= value(committed_)) return;
  committed_ = Index{*nth};
  if (on_committed_) on_committed_(committed_);
  on_committed();
}

std::uint64_t Strategy::end_pos_of(Index index) const noexcept {
  return end_pos_[value(index) % end_pos_.size()];
}

std::uint8_t Strategy::failed() const noexcept {
  return static_cast<std::uint8_t>(
      std::count_if(peers_.begin(), peers_.end(), [](const PeerState& p) { return p.failed; }));
}

}  // namespace crane::eval
