// SPDX-License-Identifier: Apache-2.0
#pragma once
// The notes that replicas send each other about themselves, so that each can state the group's
// verdict (runtime/control/verdict.h): whether its server runs, how far it is, whether it accepts
// clients.
//
// A note goes to each connected peer when something in it has changed, and repeatedly while the
// replica recovers or is late.  Notes are outside the log and may be lost.  Each is repeated a few
// times only, so that an idle group becomes silent.  When a status is wanted, a peer whose last
// note is old is asked for a new one; if it does not answer, it counts as silent.
//
// A replica that an operator drains says so before it ends, and the others pass that on to a
// replica that connects.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT NOTES-1  A note counts only while its peer is connected, and only if the process that
//                    is connected now has sent it.
// INVARIANT NOTES-2  A peer counts as drained only while it is not connected, and only if it said
//                    so itself before it went, or if this process has never seen it.

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

// The knowledge about a peer from its notes.
struct PeerView {
  bool was_there = false;  // it connected at some time since this node began
  // NOTES-2: true: an operator drained it; false: it went without a word; nullopt: it is connected,
  // or not known.
  std::optional<bool> drained;
  bool silent = false;       // it was asked, and does not answer
  bool receives_log = true;  // according to the leader; true if the leader has sent no note
  std::optional<control::Readiness> reported;  // nullopt: no note since it connected (NOTES-1)
  std::uint64_t applied = 0;                   // according to its note
  std::optional<HostNote> host;                // nullopt: as above
};

PeerNote note_of(const control::Readiness& own, std::uint64_t applied);
control::Readiness readiness_of(const PeerNote& note);

class PeerNotes {
 public:
  explicit PeerNotes(ReplicaId self) : self_(self) {}

  void on_report(ReplicaId from, const PeerNote& note, std::int64_t now_ns);
  void on_drained(ReplicaId from, const DrainedNote& note);
  void on_host(ReplicaId from, const HostNote& note);
  // The replicas that count as drained, for a peer that has just connected.
  DrainedNote drained() const noexcept;
  // Whether the peer has got no note since it connected.
  bool is_new(ReplicaId peer) const noexcept { return peers_[value(peer)].sent == 0; }
  // Whether the peer asked for a note, and waits for it.
  bool is_asked_by(ReplicaId peer) const noexcept { return peers_[value(peer)].answer_requested; }
  // The peers to send `own` to, given the connected `members`; sent() reports whether it was sent.
  std::vector<ReplicaId> due(const PeerNote& own, std::span<const consensus::MemberStatus> members,
                             std::int64_t now_ns);
  void sent(ReplicaId to, bool was_sent, std::int64_t now_ns);
  // A status is wanted: returns the peers to ask for a note, because their last one is old.
  std::vector<ReplicaId> ask(std::int64_t now_ns);

  // The latest time for the next due().
  std::int64_t due_ns() const noexcept { return due_ns_; }

  // `leader`: its note decides whether the peer receives the log.
  PeerView seen(ReplicaId peer, ReplicaId leader, std::int64_t now_ns) const;
  std::optional<control::Readiness> reported(ReplicaId peer) const;
  // Whether `replica` receives the log, according to the note of `leader`, if that peer sent one.
  bool receives_log(ReplicaId leader, ReplicaId replica) const noexcept;

  static constexpr std::int64_t kRepeatNs = 100'000'000;
  static constexpr unsigned kRepeats = 3;
  static constexpr std::int64_t kOldNs = 500'000'000;       // older notes must be renewed
  static constexpr std::int64_t kAnswerNs = 1'000'000'000;  // time for the answer

 private:
  enum class Absence : std::uint8_t { kUnknown, kLost, kDrained };
  struct Peer {
    bool there = false, was_there = false;
    bool leaves = false;                  // it said that it is being drained
    Absence absence = Absence::kUnknown;  // why it is not there
    std::optional<PeerNote> note;
    std::optional<HostNote> host;
    std::int64_t last_received_ns = 0;
    std::int64_t request_ns = 0;  // when it was asked; 0: it has answered since
    bool answer_requested = false;
    std::uint64_t sent = 0;  // the last version of this replica's note that was sent; 0: none
    unsigned repeats = 0;    // how often that version is still to be sent
    std::int64_t sent_ns = 0;
  };
  bool is_note_due(const Peer& p, bool unsettled, std::int64_t now_ns) const noexcept;

  const ReplicaId self_;
  std::array<Peer, kReplicasMax> peers_{};
  PeerNote own_;  // this replica's note, as of the last due()
  std::uint64_t version_ = 0;
  std::int64_t due_ns_ = kNever;
};

}  // namespace crane::replica
