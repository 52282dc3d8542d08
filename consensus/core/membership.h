// SPDX-License-Identifier: Apache-2.0
#pragma once
// The members of the group: a set of members, its quorums, and its bytes in a CONFIG entry.
//
// The idea (DESIGN C7, DARE 3.4): the list of members is replicated like any input.  A CONFIG entry
// holds a whole list and is in force from the moment a log holds it, committed or not; truncating
// it brings the previous list back (members.cc).  Two consecutive lists differ by at most one vote,
// so their majorities meet; for this reason there is no joint quorum as in DARE.
//
// A member is a replica id and an incarnation: the same id with another incarnation is a different
// member, which does not have what the first one promised or stored (C5, U2).
//
// INVARIANT CORE-M1  an encoded list decodes to itself; bytes that encode no list decode to
//               nothing.
// INVARIANT CORE-M2  a quorum is more than half of the voters, and only voters count.
// INVARIANT CORE-M8  a kAnalysis member keeps that role in all following lists until it is left
//               out, and no member of a list becomes kAnalysis in the next one (keeps_analysis).
//
// Threads: plain values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "consensus/core/roles.h"
#include "dmt/base/ids.h"

namespace crane::consensus::core {

// The incarnation of every member of a new group.
inline constexpr std::uint32_t kFirstIncarnation = 1;
// Invited: the incarnation is not known yet.
inline constexpr std::uint32_t kAnyIncarnation = 0;

inline constexpr std::size_t kMemberBytes = 8;
constexpr std::size_t members_bytes(std::size_t members) noexcept {
  return 8 + members * kMemberBytes;
}
inline constexpr std::size_t kMembersBytesMax = members_bytes(kReplicasMax);

class Members {
 public:
  // Replicas 0 .. voters-1 of a new group.
  static Members first(std::uint8_t voters) noexcept;

  void set(ReplicaId id, MemberRole role, std::uint32_t incarnation) noexcept;
  void remove(ReplicaId id) noexcept { set(id, MemberRole::kNone, 0); }

  MemberRole role(ReplicaId id) const noexcept { return at(id).role; }
  std::uint32_t incarnation(ReplicaId id) const noexcept { return at(id).incarnation; }
  bool member(ReplicaId id) const noexcept { return at(id).role != MemberRole::kNone; }
  bool voter(ReplicaId id) const noexcept { return at(id).role == MemberRole::kVoter; }
  // A member of exactly this incarnation.
  bool admits(ReplicaId id, std::uint32_t incarnation) const noexcept {
    return member(id) && incarnation != kAnyIncarnation && at(id).incarnation == incarnation;
  }

  unsigned count() const noexcept { return count_; }
  unsigned voters() const noexcept { return voters_; }
  // The smallest number of voters that is a majority.
  unsigned quorum() const noexcept { return voters_ / 2 + 1; }
  // True if the voters for which `holds(id)` is true are a majority (CORE-M2).
  template <typename Holds>
  bool quorum_of(Holds holds) const {
    unsigned n = 0;
    for (std::uint8_t i = 0; i < kReplicasMax; ++i) {
      if (members_[i].role == MemberRole::kVoter && holds(ReplicaId{i})) ++n;
    }
    return voters_ > 0 && n >= quorum();
  }

  // True if this list may follow `before` (CORE-M8).
  bool keeps_analysis(const Members& before) const noexcept;

  // REQUIRES: out.size() >= members_bytes(count()).  Returns the bytes used.
  std::size_t encode(std::span<std::byte> out) const noexcept;
  static std::optional<Members> decode(std::span<const std::byte> bytes) noexcept;

  friend bool operator==(const Members&, const Members&) = default;

 private:
  struct Member {
    MemberRole role = MemberRole::kNone;
    std::uint32_t incarnation = 0;
    friend bool operator==(const Member&, const Member&) = default;
  };
  const Member& at(ReplicaId id) const noexcept {
    static constexpr Member kNoMember{};
    return value(id) < kReplicasMax ? members_[value(id)] : kNoMember;
  }

  std::array<Member, kReplicasMax> members_{};
  std::uint8_t count_ = 0;
  std::uint8_t voters_ = 0;
};

}  // namespace crane::consensus::core
