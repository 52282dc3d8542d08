// SPDX-License-Identifier: Apache-2.0
#pragma once
// What of the log this replica has taken: entries as consensus commits them, in their order, and
// those that are held back while a checkpoint or a restart of the server needs it to stand at one
// position.
//
//   consensus --committed()--> delivered at once, or held --slide(), release()--> delivered
//
// Threads: the node's one thread.
// INVARIANT INTAKE-1  Entries are delivered in the log's order, each once, with none left out.
// INVARIANT INTAKE-2  While the log is held, an entry is delivered by slide() only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"
#include "proxy/host/entry_counts.h"

namespace crane::node {

// Entry types from here on are consensus' own.
inline constexpr std::uint8_t kConsensusTypes = 0xf0;

class LogIntake {
 public:
  class Owner {
   public:
    // A checkpoint or a restart holds the log.
    virtual bool holds_log() const = 0;
    // An entry that is about to be held: what is about clocks, not log positions, the server may
    // need to become quiescent.
    virtual void entry_held(const consensus::EntryView& entry) = 0;
    // The server gets it.  `was_held`: entry_held() was called for it.
    virtual void deliver(const consensus::EntryView& entry, bool was_held) = 0;

   protected:
    ~Owner() = default;
  };

  // The last entry that was delivered.
  struct Position {
    Viewstamp at;
    std::uint64_t end = 0;  // where it ends in the log, bytes
    std::uint64_t stamp_ns = 0;
  };

  // `owner` outlives it.
  explicit LogIntake(Owner& owner) noexcept : owner_(owner) {}

  // The node begins behind a checkpoint.
  void begin_behind(Index at, Index first_start, const EntryCounts& counts);

  // Whether `index` is the one that must come next (INTAKE-1).
  bool is_next(Index index) const noexcept { return value(index) == value(committed_) + 1; }
  // Consensus' own entries take a position, and are delivered to no server.
  static bool is_of_consensus(const consensus::EntryView& entry) noexcept {
    return entry.type >= kConsensusTypes;
  }
  // REQUIRES: is_next(entry.at.index).
  void committed(const consensus::EntryView& entry);

  // An entry that no server here gets (Recovery::acceptor_only).
  void pass_over(const consensus::EntryView& entry) noexcept;

  // Delivers one held entry; its index, 0: none is held.  `before` sees it first.
  template <typename Before>
  Index slide(const Before& before) {
    if (held_.empty()) return Index{0};
    const Held first = take_first();
    before(first.entry);
    deliver(first.entry, true);
    return first.entry.at.index;
  }
  // Delivers what is held, in its order, until the log is held again.
  void release();

  Index last() const noexcept { return committed_; }
  // The last one that the server gets: behind it only consensus' own may have been committed.
  Index last_for_server() const noexcept {
    return held_.empty() ? delivered_.at.index : held_.back().entry.at.index;
  }
  // The group's first START; 0: it was not delivered yet.
  Index first_start() const noexcept { return first_start_; }
  const Position& delivered() const noexcept { return delivered_; }
  // Where the committed log ends, bytes.
  std::uint64_t end() const noexcept { return end_; }
  const EntryCounts& counts() const noexcept { return counts_; }
  // Entries that clients caused, signals included.
  std::uint64_t inputs_of_clients() const noexcept;
  bool empty() const noexcept { return held_.empty(); }

 private:
  struct Held {
    consensus::EntryView entry;
    std::vector<std::byte> payload;
  };
  void deliver(const consensus::EntryView& entry, bool was_held);
  Held take_first();

  Owner& owner_;
  std::deque<Held> held_;
  Index committed_{};
  Index first_start_{};
  Position delivered_;
  std::uint64_t end_ = 0;
  EntryCounts counts_{};
};

}  // namespace crane::node
