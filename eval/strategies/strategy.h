// SPDX-License-Identifier: Apache-2.0
#pragma once
// The papers' commit rules side by side, bare, over one Fabric: for measurements only (DESIGN C10).
//
//   mu    (Mu 4.2)      one WRITE of the entry to each follower; committed when a majority of
//                       completions is there.  No follower's processor takes part.
//   dare  (DARE 3.3.1)  the same WRITE; when it completed, a second one of the tail pointer to that
//                       follower; committed when a majority has the tail; then the commit pointer
//                       is written lazily.  Followers are handled asynchronously, as in DARE.
//   apus  (APUS 4.1)    one WRITE; the follower's processor sees the entry in its memory, checks
//                       it, stores it and WRITEs a reply into the leader's memory; committed on a
//                       majority of replies.
//
// Like for like: the same entry bytes (consensus/core/log.h), the same fabric, the same grants,
// the same loop; only the rule differs.  There is no view change, no flow control and no recovery:
// a peer whose write failed is left out permanently, and a ring may be lapped (the caller waits for
// followers where it needs their memory, see follower.h).
//
// A leader's calls:  propose() x n; then until committed(): fabric.poll(), on_event() of each
// event, look().
//
// INVARIANT STRATEGY-1  an entry is committed only when a majority of the group, the leader
//               included, holds it as the rule says; committed() never falls.
//
// Threads: one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "consensus/core/log.h"
#include "consensus/fabric/fabric.h"

namespace crane::eval {

enum class Rule : std::uint8_t { kMu, kDare, kApus };
std::string_view name(Rule rule) noexcept;

// The part of all replicas' log memory that one strategy uses: a log as the core's (ring_of), with
// DARE's pointers where the core has its commit cell; then a line per follower for APUS's replies.
struct Area {
  std::uint64_t offset = 0;  // a multiple of 64
  std::uint64_t ring_bytes = 1U << 20;
  std::uint64_t log_id = 1;

  std::uint64_t pointers() const noexcept { return offset + ring_bytes; }
  std::uint64_t reply(ReplicaId from) const noexcept {
    return offset + consensus::core::log_memory_bytes(ring_bytes) + std::uint64_t{64} * value(from);
  }
  std::uint64_t bytes() const noexcept { return reply(ReplicaId{kReplicasMax}) - offset; }
};

// DARE's pointers, at Area::pointers().
struct Pointers {
  std::uint64_t tail = 0;    // position behind the last complete entry
  std::uint64_t commit = 0;  // position behind the last committed entry
};

// APUS's reply, cumulative; the CRC tells a whole one.
struct Reply {
  std::uint64_t index = 0;
  std::uint32_t crc = 0;
  std::uint32_t zero = 0;
};
Reply make_reply(Index index, std::uint64_t log_id) noexcept;
bool valid(const Reply& reply, std::uint64_t log_id) noexcept;

// An area of `fabric`'s log memory, as a log.
consensus::core::LogRing ring_of(consensus::Fabric& fabric, const Area& area);
// At most as many proposals may be outstanding.
inline constexpr std::uint64_t kOutstandingMax = 256;
inline constexpr std::uint32_t kStrategyPayloadMax = 8U << 10;

struct Group {
  ReplicaId self{};
  std::uint8_t replicas = 3;
  std::vector<consensus::Key> keys;  // [peer]: to write that peer's memory
  std::uint8_t majority() const noexcept { return static_cast<std::uint8_t>(replicas / 2 + 1); }
};

class Strategy {
 public:
  // `tag` marks the tokens of this strategy among all users of the fabric.
  static std::unique_ptr<Strategy> make(Rule rule, consensus::Fabric& fabric, const Group& group,
                                        const Area& area, std::uint8_t tag);
  virtual ~Strategy() = default;

  // `on_committed` is called the moment committed() rises, before what the rule does lazily: here a
  // leader would answer its clients.  It must not call back.
  void when_committed(std::function<void(Index)> on_committed) {
    on_committed_ = std::move(on_committed);
  }
  // Appends to the own log and starts replication.  REQUIRES: outstanding() < kOutstandingMax.
  Index propose(std::span<const std::byte> payload);
  // Every event of fabric.poll(); those of others are ignored.
  void on_event(const consensus::FabricEvent& event);
  // After the events of a poll: what appeared in the own memory.
  virtual void look() {}

  Index committed() const noexcept { return committed_; }
  std::uint64_t outstanding() const noexcept { return value(end_.last.index) - value(committed_); }
  // Peers that are not written to any more.
  std::uint8_t failed() const noexcept;

 protected:
  enum class Kind : std::uint8_t { kPart = 1, kEntry, kTail, kCommit };
  struct PeerState {
    bool failed = false;
    Index held{};  // as the rule says
  };

  Strategy(consensus::Fabric& fabric, const Group& group, const Area& area, std::uint8_t tag);
  virtual void entry_completed(ReplicaId peer, Index index) = 0;
  virtual void pointer_completed(ReplicaId peer, Kind kind, Index index);
  virtual void on_committed() {}
  // `peer` holds everything up to `index`: counts.
  void hold(ReplicaId peer, Index index);
  void write(ReplicaId peer, std::uint64_t offset, std::span<const std::byte> bytes, Kind kind,
             Index index);
  std::uint64_t end_pos_of(Index index) const noexcept;
  template <typename F>
  void for_peers(F&& what) {
    for (std::uint8_t i = 0; i < group_.replicas; ++i) {
      if (ReplicaId{i} != group_.self && !peers_[i].failed) what(ReplicaId{i});
    }
  }

  consensus::Fabric& fabric_;
  const Group group_;
  const Area area_;
  const std::uint8_t tag_;
  std::vector<PeerState> peers_;
  Index committed_{};

 private:
  void count();
  consensus::core::LogRing ring_;
  consensus::core::Cursor end_;
  std::function<void(Index)> on_committed_;
  std::array<std::uint64_t, 2 * kOutstandingMax> end_pos_{};  // [index % size]
  std::vector<std::uint64_t> sorted_;                         // scratch of count()
};

}  // namespace crane::eval
