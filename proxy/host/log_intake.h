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
#include <functional>
#include <span>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"
#include "proxy/host/entry_counts.h"

namespace crane::node {

// Entry types from here on are consensus' own.
inline constexpr std::uint8_t kConsensusTypes = 0xf0;

struct LogIntakeActions {
  // A checkpoint or a restart holds the log.
  std::function<bool()> holds;
  // An entry that is about to be held: what is about clocks, not log positions, the server may need
  // to become quiescent.
  std::function<void(const consensus::EntryView& entry)> held;
  // The server gets it.  `was_held`: held() has been told of it.
  std::function<void(const consensus::EntryView& entry, bool was_held)> deliver;
};

class LogIntake {
 public:
  // The last entry that was delivered.
  struct Position {
    Viewstamp at;
    std::uint64_t end = 0;  // where it ends in the log, bytes
    std::uint64_t stamp_ns = 0;
  };

  explicit LogIntake(LogIntakeActions actions) : actions_(std::move(actions)) {}

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
  Index slide(const std::function<void(const consensus::EntryView& entry)>& before);
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

  const LogIntakeActions actions_;
  std::deque<Held> held_;
  Index committed_{};
  Index first_start_{};
  Position delivered_;
  std::uint64_t end_ = 0;
  EntryCounts counts_{};
};

}  // namespace crane::node
