// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model of consensus in worlds of replicas: the log of a group, its acceptors, whose memory
// survives their processes, and one leader at a time.
//
// consensus/sim runs the protocol itself.  In this model a proposal is one step, so that a world is
// cheap and a search can run all of them: an entry is at once in the log of every replica that can
// be written to, and is committed if these are a majority.  Everything that concerns recovery is
// kept: a log is a ring that is overwritten and kept whole from a place on, or a store that is cut
// below the checkpoints of a majority; logs have gaps; a leader holds all committed entries, and
// further servers are elected first; a replica that lost its memory votes when it has caught up.
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
  // kInput: the client's request; kCheckpoint: the replica that takes it; kPassed: the last entry
  // that the leader's server has run, up to which followers' servers may run; kRestart: see
  // ModelChange; kClient: a digest of `body`.
  std::uint32_t number = 0;
  // kClient: the entry of a client with a connection.
  EntryType type{};
  std::shared_ptr<const std::vector<std::byte>> body = nullptr;
};

// The part of a replica that votes and holds the log.
struct Acceptor {
  std::uint64_t first = 1, last = 0;  // entries that it holds: [first, last]
  std::optional<std::uint64_t> kept;  // the log stays complete after this entry
  bool process = false;               // its node's process exists
  bool runs = false;                  // the process exists and is not stopped
  bool streaming = false;             // the leader sends it the log
  bool lacks = false;                 // it lacks entries that left the leader's log
  bool votes = true;                  // the members in force count its vote
  bool amnesiac = false;              // it lost its log, and votes when it has it again
  std::uint64_t checkpoint = 0;       // the last one that it reported to hold
  std::int64_t lag_ns = 0;            // as reported by its node
  std::uint64_t ran = 0;              // the last entry that its server had run then

  // Its process exists, and is the one in the members in force.
  bool connected() const { return process && !(votes && amnesiac); }
};

class ModelLog {
 public:
  struct Options {
    unsigned replicas = 3;
    std::uint64_t ring_entries = 0;
    bool keeps = true;     // from the place that a node names; on one machine
    bool on_disk = false;  // the log is a store, which survives a loss of power
  };
  explicit ModelLog(const Options& options)
      : options_(options), acceptors_(options.replicas), candidates_(options.replicas) {}

  // --- processes
  // 0: its log has all entries after `behind`; otherwise the first entry that it holds.
  std::uint64_t gap_behind(unsigned id, std::uint64_t behind) const;
  // A node's process began, with a server that holds the entries up to `behind`; nullopt: it only
  // votes.
  void join(unsigned id, std::optional<std::uint64_t> behind);
  void leave(unsigned id);
  void stop(unsigned id, bool stopped) { acceptors_[id].runs = !stopped; }
  void lose_power(unsigned id);
  void set_full(bool full) { full_ = full; }  // no store has room
  void keep(unsigned id, std::optional<std::uint64_t> behind) { acceptors_[id].kept = behind; }
  // A replica holds its own checkpoint: stores may be cut there.
  void checkpointed(unsigned id, std::uint64_t at);
  void report_lag(unsigned id, std::int64_t ns, std::uint64_t ran) {
    acceptors_[id].lag_ns = ns;
    acceptors_[id].ran = ran;
  }

  // --- the log
  // Returns the index; 0: not possible now.
  std::uint64_t propose(unsigned id, LogEntry entry);
  bool transfer(unsigned to);
  // Elects if there is no leader, and sends to logs that can be written to again.
  void step(std::int64_t now_ns);

  unsigned replicas() const { return options_.replicas; }
  unsigned leader() const { return leader_; }
  View view() const { return view_; }
  // The last leader that was elected, not handed leadership.
  View elected() const { return elected_; }
  // Whether that replica was a candidate at the last election.
  bool was_candidate(unsigned id) const { return candidates_[id]; }
  std::uint64_t committed() const { return committed_; }
  // The last committed entry that is for servers.
  std::uint64_t last_for_servers() const;
  std::uint64_t ring_bytes() const { return options_.ring_entries * kEntryBytes; }
  const Acceptor& acceptor(unsigned id) const { return acceptors_[id]; }
  // REQUIRES: 1 <= index <= what was proposed.
  const LogEntry& entry(std::uint64_t index) const { return entries_[index - 1]; }
  // The last election dropped committed entries: a fault of the model.
  bool lost_committed() const { return lost_committed_; }
  // A majority of the voters runs, and has not lost its memory.
  bool has_majority() const { return running() * 2 > voters(); }
  // Too many lost their memory for any to lead again (C5).
  bool is_lost() const;
  // The rings of too many do not reach back to the leader's, and a checkpoint for them requires a
  // committed entry.  This happens on hosts, by a second loss while a replica was absent for long.
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
  std::int64_t leaderless_since_ns_ = 0;  // since when no running replica leads
  bool lost_committed_ = false;
  bool full_ = false;
};

}  // namespace crane::replica::sim
