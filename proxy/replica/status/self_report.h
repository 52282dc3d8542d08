// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's reports about itself, and when it sends them: to operators (status.json), and to the
// other replicas, so that each has the group's verdict (runtime/control/verdict.h).
//
// Pure.  Threads: the node's one thread.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "proxy/replica/deadline.h"
#include "proxy/replica/status/peer_notes.h"
#include "proxy/replica/status/serving_watch.h"
#include "runtime/control/verdict.h"

namespace crane::replica {

// The facts that are cheap enough to read in each round.
struct Glance {
  consensus::Role role = consensus::Role::kFollower;
  View view{};
  bool leads = false;
  unsigned answering = 0;        // voters that answer
  bool takes_clients = false;    // it leads, and its server knows that
  bool no_room = false;          // a disk or memory is full
  std::int64_t server_pid = -1;  // >= 0: the server runs
  int server_exit = -1;          // the server's exit status once the log contains its end
  bool acceptor_only = false;    // no server can begin on this replica
  bool catches_up = false;
  bool has_more_to_run = false;   // the server has not run all committed entries
  std::uint64_t divergences = 0;  // found by this replica
  std::uint64_t checkpoints = 0;  // published or given up
};

// The other facts of its readiness.
struct Report {
  bool recovers = false;          // the server runs what the replica missed
  bool needs_checkpoint = false;  // it lacks entries that left the log
  bool waits_at_leader = false;   // the server is at the last known place of the leader's server
  std::int64_t held_ns = 0;       // how long clients have waited for followers or a checkpoint
  std::int64_t behind_ns = 0;     // age of the oldest entry that the server has not taken
  control::Progress progress;     // while the replica recovers, or only votes
  std::string why_no_server;      // why the server cannot begin at an existing checkpoint
};

class SelfReport {
 public:
  explicit SelfReport(ReplicaId self) : self_(self), notes_(self) {}

  // The report has changed: it will be written soon, after everything that clients wait for.
  void changed(std::int64_t now_ns) noexcept {
    write_at_ns_ = std::min(write_at_ns_, now_ns + kWriteAfterNs);
  }
  // These three are called in each round, in this order.  True: write status.json, which takes as
  // long as an election.
  bool must_write(const Glance& glance, std::int64_t now_ns);
  // True: look at the server; looked() follows.
  bool must_look(std::int64_t now_ns) const noexcept { return serving_.is_due(now_ns); }
  // True: the others must be informed; note_to_send() follows.
  bool must_report(const Glance& glance, std::int64_t now_ns);
  std::int64_t due_ns() const noexcept {
    return std::min({write_at_ns_, notes_.due_ns(), recheck_at_ns_, look_at_ns_});
  }

  // The result of a look: the server's listen queues, and `rests` as in ServingWatch.  `stuck`
  // names what all of its threads wait for in vain; it is empty if a thread can run.
  void looked(const Glance& glance, std::span<const ListenQueue> queues, bool rests,
              const std::string& stuck, std::int64_t now_ns);
  // Why the server serves no client, as of the last look; empty: it does.
  const std::string& not_serving() const noexcept { return not_serving_; }
  control::Readiness readiness(const Glance& glance, const Report& report) const;

  struct Note {
    PeerNote note;
    std::vector<ReplicaId> to;
  };
  // The note to send now and its receivers; sent() follows for each of them.
  Note note_to_send(const control::Readiness& own, const Glance& glance, Index applied,
                    const consensus::GroupStatus& group, std::int64_t now_ns);
  void sent(ReplicaId to, bool was_sent, std::int64_t now_ns) { notes_.sent(to, was_sent, now_ns); }
  PeerNotes& notes() noexcept { return notes_; }
  const PeerNotes& notes() const noexcept { return notes_; }

 private:
  static constexpr std::int64_t kWriteAfterNs = 20'000'000;
  static constexpr std::int64_t kMovesNs = 50'000'000;

  // The sources of events, if nothing else reports their change.
  struct Mark {
    std::int64_t server_pid = -1;
    std::uint64_t divergences = 0, checkpoints = 0;
    bool catches_up = false;
    bool operator==(const Mark&) const = default;
  };
  // The part of a note that is cheap to read.
  struct ReportedState {
    consensus::Role role = consensus::Role::kFollower;
    View view{};
    unsigned answering = 0;
    bool takes_clients = false;
    bool no_room = false;
    std::int64_t server_pid = -1;
    std::string not_serving;
    bool operator==(const ReportedState&) const = default;
  };

  const ReplicaId self_;
  ServingWatch serving_;
  PeerNotes notes_;
  std::string not_serving_;
  Mark mark_;
  ReportedState reported_;
  std::int64_t write_at_ns_ = kNever;
  std::int64_t look_at_ns_ = kNever;
  std::int64_t recheck_at_ns_ = 0;  // when to look again at facts that change without an event
};

// The group as a replica knows it.
struct KnownMembers {
  ReplicaId self{};
  bool leads = false;
  std::optional<ReplicaId> leader;
  std::span<const consensus::MemberStatus> members;  // empty: not known yet
  control::Readiness own;
  bool receives_log = true;  // according to the leader
  std::string no_quorum, alarm;
  bool unsupervised = false;
};
// `peers`: the notes of each other member, by its number.
control::GroupView seen_by(const KnownMembers& known,
                           const std::map<std::uint8_t, PeerView>& peers);

}  // namespace crane::replica
