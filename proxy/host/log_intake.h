// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries that this replica has taken from the log.  Consensus commits them in order; some are
// held back while a checkpoint or a restart of the server needs the log to stop at one position.
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

// Entry types from this number on belong to consensus.
inline constexpr std::uint8_t kConsensusTypes = 0xf0;

class LogIntake {
 public:
  class Owner {
   public:
    // A checkpoint or a restart holds the log.
    virtual bool holds_log() const = 0;
    // An entry is about to be held.  The server may need entries about clocks (not log positions)
    // to become quiescent.
    virtual void entry_held(const consensus::EntryView& entry) = 0;
    // The entry goes to the server.  `was_held`: entry_held() was called for it.
    // The server gets it.  `was_held`: entry_held() was called for it.
    virtual void deliver(const consensus::EntryView& entry, bool was_held) = 0;

   protected:
    ~Owner() = default;
  };

  // The position of the last delivered entry.
  struct Position {
    Viewstamp at;
    std::uint64_t end = 0;  // its end in the log, bytes
    std::uint64_t stamp_ns = 0;
  };

  // `owner` must outlive it.
  explicit LogIntake(Owner& owner) noexcept : owner_(owner) {}

  // The node begins at a checkpoint; the next entry is the one after `at`.
  void begin_behind(Index at, Index first_start, const EntryCounts& counts);

  // Whether `index` is the next one to be committed (INTAKE-1).
  bool is_next(Index index) const noexcept { return value(index) == value(committed_) + 1; }
  // Entries of consensus itself take a position but are not delivered to the server.
  static bool is_of_consensus(const consensus::EntryView& entry) noexcept {
    return entry.type >= kConsensusTypes;
  }
  // REQUIRES: is_next(entry.at.index).
  void committed(const consensus::EntryView& entry);

  // Counts an entry that no server on this replica gets (Recovery::acceptor_only).
  void pass_over(const consensus::EntryView& entry) noexcept;

  // Delivers one held entry and returns its index; 0: none is held.  Calls `before` first.
  template <typename Before>
  Index slide(const Before& before) {
    if (held_.empty()) return Index{0};
    const Held first = take_first();
    before(first.entry);
    deliver(first.entry, true);
    return first.entry.at.index;
  }
  // Delivers the held entries in order until the log is held again.
  void release();

  Index last() const noexcept { return committed_; }
  // The last entry for the server; only entries of consensus may have been committed after it.
  Index last_for_server() const noexcept {
    return held_.empty() ? delivered_.at.index : held_.back().entry.at.index;
  }
  // The group's first START; 0: not delivered yet.
  Index first_start() const noexcept { return first_start_; }
  const Position& delivered() const noexcept { return delivered_; }
  // The end of the committed log, bytes.
  std::uint64_t end() const noexcept { return end_; }
  const EntryCounts& counts() const noexcept { return counts_; }
  // The number of entries that clients caused, including signals.
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
