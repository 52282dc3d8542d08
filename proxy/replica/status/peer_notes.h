// SPDX-License-Identifier: Apache-2.0
#pragma once
// What replicas tell each other of themselves, so that each of them can say how the group is
// (runtime/control/verdict.h): whether its server runs, how far it is, whether it takes clients.
//
// A note goes to each peer that is there when something in it has changed, and now and then while
// the replica recovers or is late.  Notes are outside of the log and may be lost: each is repeated
// a few times, so that an idle group falls silent again.  A peer whose last note is old is asked
// for a new one when a status is wanted; one that does not answer counts as silent.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT NOTES-1  A note counts only while its peer is connected, and only if it is of the
//                    process that is connected now.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "proxy/replica/deadline.h"
#include "proxy/replica/messages.h"
#include "runtime/control/verdict.h"

namespace crane::replica {

// What is known of a peer by notes.
struct PeerView {
  bool was_there = false;  // since this node began
  bool silent = false;     // it was asked, and does not answer
  bool gets_log = true;    // by the leader's word; true: the leader has said nothing
  std::optional<control::Readiness> told;  // nullopt: nothing since it is there (NOTES-1)
  std::uint64_t applied = 0;               // as it has told
};

PeerNote note_of(const control::Readiness& own, std::uint64_t applied);
control::Readiness readiness_of(const PeerNote& note);

class PeerNotes {
 public:
  explicit PeerNotes(ReplicaId self) : self_(self) {}

  void heard(ReplicaId from, const PeerNote& note, std::int64_t now_ns);
  // Whom to send `own`, given what `members` are there; sent() says whether that went out.
  std::vector<ReplicaId> due(const PeerNote& own, std::span<const consensus::MemberStatus> members,
                             std::int64_t now_ns);
  void sent(ReplicaId to, bool went_out, std::int64_t now_ns);
  // A status is wanted: peers to ask for a note, because their last one is old.
  std::vector<ReplicaId> ask(std::int64_t now_ns);

  // When to call due() again at the latest.
  std::int64_t due_ns() const noexcept { return due_ns_; }

  // `leader`: its word on whether it writes to the peer's log counts.
  PeerView seen(ReplicaId peer, ReplicaId leader, std::int64_t now_ns) const;
  std::optional<control::Readiness> told(ReplicaId peer) const;
  // Whether the leader, if it is a peer that has told, writes to the log of `replica`.
  bool gets_log(ReplicaId leader, ReplicaId replica) const noexcept;

  static constexpr std::int64_t kRepeatNs = 100'000'000;
  static constexpr unsigned kRepeats = 3;
  static constexpr std::int64_t kOldNs = 500'000'000;       // then it is asked,
  static constexpr std::int64_t kAnswerNs = 1'000'000'000;  // and has so long to answer

 private:
  struct Peer {
    bool there = false, was_there = false;
    std::optional<PeerNote> note;
    std::int64_t heard_ns = 0;
    std::int64_t request_ns = 0;  // 0: it has answered since
    bool wants_answer = false;
    std::uint64_t sent = 0;  // the last version of the own note that went out; 0: none
    unsigned repeats = 0;    // of that one, still to come
    std::int64_t sent_ns = 0;
  };
  bool wants(const Peer& p, bool unsettled, std::int64_t now_ns) const noexcept;

  const ReplicaId self_;
  std::array<Peer, kReplicasMax> peers_{};
  PeerNote own_;  // as of the last look
  std::uint64_t version_ = 0;
  std::int64_t due_ns_ = kNever;
};

}  // namespace crane::replica
