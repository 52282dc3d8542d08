// SPDX-License-Identifier: Apache-2.0
#pragma once
// What worlds of replicas take consensus for: the log of a group on one host, its acceptors, whose
// memory outlives their processes, and one leader at a time.
//
// consensus/sim runs the protocol itself.  Here one proposal is one step, so that a world costs
// little and a search can run all of them: an entry is at once in the log of every replica that can
// be written to, and committed if these are a majority.  What recovery has to do with stays as it
// is: logs are rings which are overwritten, kept whole from a place on, and have gaps; a leader
// holds all that was committed, and servers that are further go first.
//
// Threads: one.

#include <cstdint>
#include <optional>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"

namespace crane::replica::sim {

inline constexpr unsigned kReplicasMost = 7;
inline constexpr unsigned kNone = 0xff;            // no replica
inline constexpr std::uint64_t kEntryBytes = 100;  // of each entry

struct LogEntry {
  enum class Kind : std::uint8_t { kStart, kInput, kCheckpoint };
  Kind kind{};
  View view{};
  std::uint32_t number = 0;  // kInput: the client's request; kCheckpoint: who takes it
};

// The part of a replica that votes and holds the log.
struct Acceptor {
  std::uint64_t first = 1, last = 0;  // entries in the ring: [first, last]
  std::optional<std::uint64_t> kept;  // it stays whole behind this entry
  bool process = false;               // its node's is there,
  bool runs = false;                  // and not stopped
  bool streaming = false;             // the leader writes to its log
  bool lacks = false;                 // it lacks entries that left the leader's log
  std::int64_t lag_ns = 0;            // as its node has reported,
  std::uint64_t ran = 0;              // and how far its server was
};

class ModelLog {
 public:
  ModelLog(unsigned replicas, std::uint64_t ring_entries)
      : acceptors_(replicas), ring_(ring_entries) {}

  // --- processes
  // 0: nothing of the entries behind `behind` has left its ring; else the first that it holds.
  std::uint64_t gap_behind(unsigned id, std::uint64_t behind) const;
  // A node's process began, with a server that holds all up to `behind`; nullopt: it only votes.
  void join(unsigned id, std::optional<std::uint64_t> behind);
  void leave(unsigned id);
  void stop(unsigned id, bool stopped) { acceptors_[id].runs = !stopped; }
  void keep(unsigned id, std::optional<std::uint64_t> behind) { acceptors_[id].kept = behind; }
  void report_lag(unsigned id, std::int64_t ns, std::uint64_t ran) {
    acceptors_[id].lag_ns = ns;
    acceptors_[id].ran = ran;
  }

  // --- the log
  // 0: not now.
  std::uint64_t propose(unsigned id, LogEntry entry);
  bool transfer(unsigned to);
  // Elects where there is no leader, and writes to logs that can be written to again.
  void step(std::int64_t now_ns);

  unsigned replicas() const { return static_cast<unsigned>(acceptors_.size()); }
  unsigned leader() const { return leader_; }
  View view() const { return view_; }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t ring_bytes() const { return ring_ * kEntryBytes; }
  const Acceptor& acceptor(unsigned id) const { return acceptors_[id]; }
  // REQUIRES: 1 <= index <= what was proposed.
  const LogEntry& entry(std::uint64_t index) const { return entries_[index - 1]; }
  // Entries that were given up at the last election, if they were committed: a fault of the model.
  bool lost_committed() const { return lost_committed_; }

 private:
  unsigned running() const;
  unsigned best_candidate() const;
  void lead(unsigned id);
  void depose();
  bool has_room(const Acceptor& a) const;
  void write(Acceptor& a, std::uint64_t upto);
  void stream();
  void commit();

  std::vector<Acceptor> acceptors_;
  const std::uint64_t ring_;
  std::vector<LogEntry> entries_;  // the leader's log
  std::uint64_t committed_ = 0;
  unsigned leader_ = kNone;
  View view_{};
  std::uint64_t reign_ = 0;
  std::int64_t missed_ns_ = 0;  // since when there is no leader that runs
  bool lost_committed_ = false;
};

}  // namespace crane::replica::sim
