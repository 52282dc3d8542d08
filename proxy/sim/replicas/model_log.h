// SPDX-License-Identifier: Apache-2.0
#pragma once
// What worlds of replicas take consensus for: the log of a group, its acceptors, whose memory
// outlives their processes, and one leader at a time.
//
// consensus/sim runs the protocol itself.  Here one proposal is one step, so that a world costs
// little and a search can run all of them: an entry is at once in the log of every replica that can
// be written to, and committed if these are a majority.  What recovery has to do with stays as it
// is: logs are rings which are overwritten, kept whole from a place on, or stores which are cut
// below the checkpoints of a majority; they have gaps; a leader holds all that was committed, and
// servers that are further go first; a replica that lost its memory votes when it has caught up.
//
// Threads: one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"

namespace crane::replica::sim {

inline constexpr unsigned kReplicasMost = 7;
inline constexpr unsigned kNone = 0xff;            // no replica
inline constexpr std::uint64_t kEntryBytes = 100;  // of each entry

struct LogEntry {
  enum class Kind : std::uint8_t { kStart, kInput, kCheckpoint, kPassed, kRestart, kClient };
  Kind kind{};
  View view{};
  // kInput: the client's request; kCheckpoint: who takes it; kPassed: the entry up to which the
  // leader's server has run, so that followers' servers may; kRestart: as ModelChange says;
  // kClient: a digest of `body`.
  std::uint32_t number = 0;
  // kClient: of one with a connection.
  EntryType type{};
  std::shared_ptr<const std::vector<std::byte>> body = nullptr;
};

// The part of a replica that votes and holds the log.
struct Acceptor {
  std::uint64_t first = 1, last = 0;  // entries that it holds: [first, last]
  std::optional<std::uint64_t> kept;  // it stays whole behind this entry
  bool process = false;               // its node's is there,
  bool runs = false;                  // and not stopped
  bool streaming = false;             // the leader writes to its log
  bool lacks = false;                 // it lacks entries that left the leader's log
  bool votes = true;                  // the members in force count it,
  bool amnesiac = false;              // but it lost what it held, and votes when it has it again
  std::uint64_t checkpoint = 0;       // that it said to hold
  std::int64_t lag_ns = 0;            // as its node has reported,
  std::uint64_t ran = 0;              // and how far its server was

  // Its process is there, and the one that the members in force name.
  bool connected() const { return process && !(votes && amnesiac); }
};

class ModelLog {
 public:
  struct Options {
    unsigned replicas = 3;
    std::uint64_t ring_entries = 0;
    bool keeps = true;     // from where a node says on; on one machine
    bool on_disk = false;  // the log is a store, which a loss of power leaves
  };
  explicit ModelLog(const Options& options)
      : options_(options), acceptors_(options.replicas), candidates_(options.replicas) {}

  // --- processes
  // 0: nothing of the entries behind `behind` has left its log; else the first that it holds.
  std::uint64_t gap_behind(unsigned id, std::uint64_t behind) const;
  // A node's process began, with a server that holds all up to `behind`; nullopt: it only votes.
  void join(unsigned id, std::optional<std::uint64_t> behind);
  void leave(unsigned id);
  void stop(unsigned id, bool stopped) { acceptors_[id].runs = !stopped; }
  void lose_power(unsigned id);
  void set_full(bool full) { full_ = full; }  // no store has room
  void keep(unsigned id, std::optional<std::uint64_t> behind) { acceptors_[id].kept = behind; }
  // A replica holds a checkpoint of its own: stores may be cut there.
  void checkpointed(unsigned id, std::uint64_t at);
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

  unsigned replicas() const { return options_.replicas; }
  unsigned leader() const { return leader_; }
  View view() const { return view_; }
  // The last leader that was not handed the lead.
  View elected() const { return elected_; }
  // .. and whether that replica could have been.
  bool was_candidate(unsigned id) const { return candidates_[id]; }
  std::uint64_t committed() const { return committed_; }
  // The last committed entry that servers get.
  std::uint64_t last_for_servers() const;
  std::uint64_t ring_bytes() const { return options_.ring_entries * kEntryBytes; }
  const Acceptor& acceptor(unsigned id) const { return acceptors_[id]; }
  // REQUIRES: 1 <= index <= what was proposed.
  const LogEntry& entry(std::uint64_t index) const { return entries_[index - 1]; }
  // Entries that were given up at the last election, if they were committed: a fault of the model.
  bool lost_committed() const { return lost_committed_; }
  // A majority of those that vote is there, and has not lost its memory.
  bool has_majority() const { return running() * 2 > voters(); }
  // So many lost their memory that none will lead again (C5).
  bool is_lost() const;
  // The rings of too many do not reach back to what the leader's holds, and only an entry that is
  // committed has a checkpoint taken for them: on hosts, a second loss while one was away for long.
  bool cannot_commit() const;

 private:
  unsigned running() const;
  unsigned voters() const;
  unsigned best_candidate();
  void lead(unsigned id);
  void depose() { leader_ = kNone; }
  bool has_room(const Acceptor& a) const;
  void write(Acceptor& a, std::uint64_t upto);
  void stream();
  void admit(Acceptor& a, std::uint64_t last);
  void commit();
  void cut();

  const Options options_;
  std::vector<Acceptor> acceptors_;
  std::vector<bool> candidates_;   // at the last election
  std::vector<LogEntry> entries_;  // the leader's log
  std::uint64_t committed_ = 0;
  unsigned leader_ = kNone;
  View view_{}, elected_{};
  std::uint64_t reign_ = 0;
  std::int64_t leaderless_since_ns_ = 0;  // since when there is no leader that runs
  bool lost_committed_ = false;
  bool full_ = false;
};

}  // namespace crane::replica::sim
