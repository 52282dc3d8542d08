// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the replicas of a group tell each other beside the log: the one table of out-of-band
// messages.  Consensus carries their bytes (Consensus::send_message); any of them may be lost, and
// those of one sender come in their order or not at all.
//
//   send(message_of(m).bytes()) .. another replica .. read_message(bytes) -> Message
//
// A new message is a struct and a row here, and what hears it (Node::on_message,
// proxy/node/node_events.cc).
//
// Threads: pure functions over plain values.
// INVARIANT MESSAGE-1  What is read is of the type, the version and the length of one row of the
//                      table, or it is not read at all.

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
  // Not 0: its node began with less than the log has, and it has not caught up since; a number that
  // tells this return from others.
  std::uint64_t recovers = 0;
};

// A replica that recovers asks its leader how much the group has committed, and the answer.
struct CommittedMessage {
  std::uint64_t life = 0;       // of the replica that asks
  std::uint64_t answers = 0;    // 1: it does
  std::uint64_t committed = 0;  // by the group, then
};

// A leader whose server lags asks its followers how far theirs are, and a follower's answer.
struct StandingMessage {
  std::uint64_t answers = 0;  // 1: it does
  std::uint64_t applied = 0;  // the last entry that the follower's server has run,
  std::uint64_t clock = 0;    // and its logical clock
  std::uint64_t waits = 0;    // 1: it waits for the leader's server to pass this clock
};

// A replica, to all others: what became of the checkpoint that it was asked for.  Any of them may
// lead next and ask for the one after that, or may recover and begin at it.  One that is not heard
// of counts as given up in time.
struct CheckpointNote {
  enum Came : std::uint64_t {
    kNothing = 0,
    kTaken = 1,
    kGivenUp = 2,
    kRefused = 3,  // for good
    kBusy = 4,     // another one was not finished
  };

  std::uint64_t came = kNothing;
  std::uint64_t index = 0;    // its entry; of one that was given up about that
  std::uint64_t end = 0;      // where that entry ends in the log, bytes
  std::uint64_t by_criu = 0;  // 1: of one that was taken: CRIU did
};

// A follower, to its leader: why CRIU does not dump its server; "": it does.
struct RefusalMessage {
  char why[200] = {};
};

// A replica, of itself, to each peer that is there: what makes the verdict of the group
// (runtime/control/verdict.h, proxy/replica/status/peer_notes.h).
struct PeerNote {
  std::uint64_t applied = 0;
  std::uint64_t done = 0, of = 0, per_s = 0;
  std::int64_t left_ms = -1;
  std::int64_t lag_ms = 0;
  std::array<std::uint64_t, 2> gets_log{};  // a leader's word: a bit for each replica
  std::uint32_t flags = 0;                  // Flag
  std::uint32_t asks = 0;                   // 1: it wants one back
  char why_not[96] = {};                    // as much of it as there is room for

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

// --- the table: a number is never used for anything else again

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
struct MessageRow<StandingMessage> : Row<3, 1> {};
template <>
struct MessageRow<CheckpointNote> : Row<4, 1> {};
template <>
struct MessageRow<RefusalMessage> : Row<5, 1> {};
template <>
struct MessageRow<PeerNote> : Row<6, 1> {};
template <>
struct MessageRow<proxy::Digest> : Row<7, 1> {};  // of a replica's outputs and schedule at a cut

using Message = std::variant<ProgressMessage, CommittedMessage, StandingMessage, CheckpointNote,
                             RefusalMessage, PeerNote, proxy::Digest>;

// --- the codec

struct MessageHead {
  std::uint8_t type = 0, version = 0;
  std::uint16_t size = 0;  // of what follows
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

// The bytes live as long as what is returned.
template <typename M>
Framed<M> message_of(const M& body) noexcept {
  return {.body = body};
}

// nullopt: it is none of this table (MESSAGE-1).
std::optional<Message> read_message(std::span<const std::byte> bytes) noexcept;

}  // namespace crane::replica
