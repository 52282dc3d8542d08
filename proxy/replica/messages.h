// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages that the replicas of a group send each other outside the log, in one table.
// Consensus carries their bytes (Consensus::send_message).  Any message may be lost; those that
// arrive from one sender arrive in order.
//
//   send(message_of(m).bytes()) .. another replica .. read_message(bytes) -> Message
//
// A new message needs a struct and a row here, and a handler (Node::on_message,
// proxy/node/node_events.cc).
//
// Threads: pure functions over plain values.
// INVARIANT MESSAGE-1  A message is read only if its type, version and length are those of one row
//                      of the table.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "proxy/record/verification.h"

namespace crane::replica {

// A late follower, to its leader: how far its server is.
struct ProgressMessage {
  std::uint64_t applied = 0;  // the last entry that its server admitted
  // Not 0: its node began with less than the log contains, and has not caught up since.  The number
  // distinguishes this return from others.
  std::uint64_t recovers = 0;
};

// From a recovering replica to its leader: how much has the group committed?  Also the answer.
struct CommittedMessage {
  std::uint64_t life = 0;       // identifies the process that sent the question
  std::uint64_t answers = 0;    // 1: this is the answer
  std::uint64_t committed = 0;  // by the group, at that time
};

// From a leader whose server lags to its followers: how far are theirs?  Also a follower's answer.
struct ServerPlaceMessage {
  std::uint64_t answers = 0;  // 1: this is the answer
  std::uint64_t applied = 0;  // the last entry that the follower's server has run
  std::uint64_t clock = 0;    // the logical clock of that server
  std::uint64_t waits = 0;    // 1: it waits for the leader's server to pass this clock
};

// From a replica to all others: the outcome of the checkpoint that was requested from it.  Any of
// them may lead next and request the following one, or may recover and begin at this one.  If no
// note arrives, the leader assumes after a time that the checkpoint was given up.
struct CheckpointNote {
  enum State : std::uint64_t {
    kNothing = 0,
    kTaken = 1,
    kGivenUp = 2,
    kRefused = 3,  // it will always be refused
    kBusy = 4,     // the previous one was not finished
  };

  std::uint64_t state = kNothing;
  std::uint64_t index = 0;    // its entry; for one that was given up, approximately
  std::uint64_t end = 0;      // where that entry ends in the log, bytes
  std::uint64_t by_criu = 0;  // 1: it was taken by CRIU
};

// From a follower to its leader: why CRIU cannot dump its server; "": it can.
struct RefusalMessage {
  char why[200] = {};
};

// From a follower to its leader: an operator of its host requests a checkpoint from it.  The leader
// requests it by an entry, or answers with a WishRefusal.
struct CheckpointWish {
  std::uint64_t behind = 0;  // the last entry that the follower knew to be committed
};
struct WishRefusal {
  std::uint64_t behind = 0;  // of the wish
  char why[88] = {};         // truncated to this size
};

// From a replica to each connected peer: its own state, from which the verdict of the group is made
// (runtime/control/verdict.h, proxy/replica/status/peer_notes.h).
struct PeerNote {
  std::uint64_t applied = 0;
  std::uint64_t done = 0, of = 0, per_s = 0;
  std::int64_t left_ms = -1;
  std::int64_t lag_ms = 0;
  std::array<std::uint64_t, 2> receives_log{};  // set by the leader: a bit for each replica
  std::uint32_t flags = 0;                      // Flag
  std::uint32_t asks = 0;                       // 1: the sender requests a note in return
  char why_not[96] = {};                        // truncated to this size

  enum Flag : std::uint32_t {
    kRuns = 1,
    kStarts = 2,
    kTakesClients = 4,
    kRecovers = 8,
    kNeedsCheckpoint = 16,
    kHeld = 32,
    kLeads = 64,
    kNoRoom = 128,
    kAcceptorOnly = 256,
    kPaced = 512,
  };
};
static_assert(kReplicasMax <= 128);

// From a replica to its connected peers: replicas that an operator drained and that have not been
// back since, a bit for each.  The sender's own bit: it is being drained.
struct DrainedNote {
  std::array<std::uint64_t, 2> replicas{};

  bool has(ReplicaId replica) const noexcept {
    return (replicas[value(replica) / 64] >> (value(replica) % 64) & 1) != 0;
  }
  void add(ReplicaId replica) noexcept {
    replicas[value(replica) / 64] |= std::uint64_t{1} << (value(replica) % 64);
  }
  bool empty() const noexcept { return replicas == std::array<std::uint64_t, 2>{}; }
};

// From a replica to a peer that asked it for a PeerNote: its node and machine, for people who look
// at the peer.
struct HostNote {
  std::int64_t begun_unix_s = 0;                      // the start of its node
  std::uint64_t disk_bytes = 0, disk_free_bytes = 0;  // of its group's directory; 0: not known
  char commit[40] = {};                               // of its build; truncated to this size
};

// --- the table: a number is never reused for another message

template <typename M>
struct MessageRow;
template <std::uint8_t Type, std::uint8_t Version>
struct Row {
  static constexpr std::uint8_t kType = Type, kVersion = Version;
};
template <>
struct MessageRow<ProgressMessage> : Row<1, 1> {};
template <>
struct MessageRow<CommittedMessage> : Row<2, 1> {};
template <>
struct MessageRow<ServerPlaceMessage> : Row<3, 1> {};
template <>
struct MessageRow<CheckpointNote> : Row<4, 1> {};
template <>
struct MessageRow<RefusalMessage> : Row<5, 1> {};
template <>
struct MessageRow<PeerNote> : Row<6, 1> {};
template <>
struct MessageRow<proxy::Digest> : Row<7, 1> {};  // of a replica's outputs and schedule at a cut
template <>
struct MessageRow<CheckpointWish> : Row<8, 1> {};
template <>
struct MessageRow<DrainedNote> : Row<9, 1> {};
template <>
struct MessageRow<HostNote> : Row<10, 1> {};
template <>
struct MessageRow<WishRefusal> : Row<11, 1> {};

using Message = std::variant<ProgressMessage, CommittedMessage, ServerPlaceMessage, CheckpointNote,
                             RefusalMessage, PeerNote, proxy::Digest, CheckpointWish, DrainedNote,
                             HostNote, WishRefusal>;

// --- the codec

struct MessageHead {
  std::uint8_t type = 0, version = 0;
  std::uint16_t size = 0;  // of the body
  std::uint32_t unused = 0;
};

template <typename M>
struct Framed {
  MessageHead head{MessageRow<M>::kType, MessageRow<M>::kVersion, sizeof(M), 0};
  M body{};

  std::span<const std::byte> bytes() const noexcept {
    static_assert(std::is_trivially_copyable_v<M> && sizeof(Framed) == sizeof head + sizeof(M));
    static_assert(sizeof(Framed) <= consensus::kOutOfBandBytesMax);
    return std::as_bytes(std::span<const Framed, 1>{this, 1});
  }
};

// The bytes are valid as long as the returned object.
template <typename M>
Framed<M> message_of(const M& body) noexcept {
  return {.body = body};
}

// nullopt: the message matches no row of the table (MESSAGE-1).
std::optional<Message> read_message(std::span<const std::byte> bytes) noexcept;

}  // namespace crane::replica
