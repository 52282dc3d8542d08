// SPDX-License-Identifier: Apache-2.0
#include "consensus/core/membership.h"

#include <cstring>

#include "dmt/base/assert.h"

namespace crane::consensus::core {

namespace {

// The bytes of a list: a head, then the members by ascending id; little-endian.
struct Head {
  std::uint32_t magic = 0;
  std::uint32_t count = 0;
};
struct Item {
  std::uint8_t id = 0;
  std::uint8_t role = 0;
  std::uint16_t zero = 0;
  std::uint32_t incarnation = 0;
};
constexpr std::uint32_t kMagic = 0x31464e43;  // "CNF1"
static_assert(sizeof(Head) == members_bytes(0) && sizeof(Item) == kMemberBytes);

}  // namespace

Members Members::first(std::uint8_t voters) noexcept {
  Members m;
  for (std::uint8_t i = 0; i < voters; ++i) {
    m.set(ReplicaId{i}, MemberRole::kVoter, kFirstIncarnation);
  }
  return m;
}

void Members::set(ReplicaId id, MemberRole role, std::uint32_t incarnation) noexcept {
  CRANE_ASSERT(value(id) < kReplicasMax);
  Member& m = members_[value(id)];
  const auto one = [](bool yes) { return static_cast<std::uint8_t>(yes ? 1 : 0); };
  count_ = static_cast<std::uint8_t>(count_ - one(m.role != MemberRole::kNone));
  voters_ = static_cast<std::uint8_t>(voters_ - one(m.role == MemberRole::kVoter));
  m = role == MemberRole::kNone ? Member{} : Member{role, incarnation};
  count_ = static_cast<std::uint8_t>(count_ + one(role != MemberRole::kNone));
  voters_ = static_cast<std::uint8_t>(voters_ + one(role == MemberRole::kVoter));
}

bool Members::keeps_analysis(const Members& before) const noexcept {
  for (std::uint8_t i = 0; i < kReplicasMax; ++i) {
    const MemberRole was = before.members_[i].role, is = members_[i].role;
    if (was == is || was == MemberRole::kNone || is == MemberRole::kNone) continue;
    if (was == MemberRole::kAnalysis || is == MemberRole::kAnalysis) return false;
  }
  return true;
}

std::size_t Members::encode(std::span<std::byte> out) const noexcept {
  CRANE_ASSERT(out.size() >= members_bytes(count_));
  const Head head{kMagic, count_};
  std::memcpy(out.data(), &head, sizeof head);
  std::size_t at = sizeof head;
  for (std::uint8_t i = 0; i < kReplicasMax; ++i) {
    if (members_[i].role == MemberRole::kNone) continue;
    const Item item{i, static_cast<std::uint8_t>(members_[i].role), 0, members_[i].incarnation};
    std::memcpy(out.data() + at, &item, sizeof item);
    at += sizeof item;
  }
  return at;
}

std::optional<Members> Members::decode(std::span<const std::byte> bytes) noexcept {
  Head head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kMagic || head.count > kReplicasMax) return std::nullopt;
  if (bytes.size() != members_bytes(head.count)) return std::nullopt;
  Members m;
  int before = -1;
  for (std::uint32_t i = 0; i < head.count; ++i) {
    Item item;
    std::memcpy(&item, bytes.data() + members_bytes(i), sizeof item);
    const auto role = static_cast<MemberRole>(item.role);
    const bool known = role > MemberRole::kNone && role <= MemberRole::kAnalysis;
    if (item.id >= kReplicasMax || item.id <= before || !known || item.zero != 0) {
      return std::nullopt;
    }
    before = item.id;
    m.set(ReplicaId{item.id}, role, item.incarnation);
  }
  if (m.voters() == 0) return std::nullopt;
  return m;
}

}  // namespace crane::consensus::core
