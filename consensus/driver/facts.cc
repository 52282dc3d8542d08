// SPDX-License-Identifier: Apache-2.0
#include "consensus/driver/facts.h"

#include <cstring>
#include <span>

#include "dmt/base/crc.h"

namespace crane::consensus {
namespace {

// Little-endian, then the list of members.
struct Head {
  std::uint32_t crc = 0;  // over the rest, then the list
  std::uint32_t magic = 0;
  std::uint32_t group = 0;
  std::uint32_t zero = 0;
  std::uint64_t view = 0;
  std::uint64_t config_view = 0;
  std::uint64_t config_index = 0;
};
constexpr std::uint32_t kMagic = 0x31504b43;  // "CKP1"

// Distinguishes groups without revealing the secret id.
std::uint32_t group_of(std::uint64_t log_id) noexcept {
  std::uint64_t z = log_id + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

std::uint32_t crc_of(const Head& head, std::span<const std::byte> list) noexcept {
  const std::uint32_t crc = crc32c(&head.magic, sizeof head - offsetof(Head, magic));
  return crc32c(list.data(), list.size(), crc);
}

}  // namespace

std::vector<std::byte> encode_facts(std::uint64_t log_id, View view, const core::ConfigAt& config) {
  Head head;
  head.magic = kMagic;
  head.group = group_of(log_id);
  head.view = value(view);
  head.config_view = value(config.at.view);
  head.config_index = value(config.at.index);
  std::vector<std::byte> bytes(sizeof head + core::members_bytes(config.members.count()));
  const auto list = std::span(bytes).subspan(sizeof head);
  config.members.encode(list);
  head.crc = crc_of(head, list);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

Result<core::Checkpoint> decode_checkpoint(const Checkpoint& checkpoint, std::uint64_t log_id,
                                           const core::Members& first) {
  core::Checkpoint c;
  c.at = {checkpoint.place.pos, checkpoint.place.at};
  c.config.members = first;
  if (value(c.at.last.index) == 0) {
    if (c.at == core::Cursor{}) return c;
    return Error{Code::kDamaged, 0, "the checkpoint's place is invalid"};
  }
  Head head;
  const std::span<const std::byte> bytes = checkpoint.facts;
  if (bytes.size() < sizeof head) return Error{Code::kDamaged, 0, "the checkpoint has no facts"};
  std::memcpy(&head, bytes.data(), sizeof head);
  const auto list = bytes.subspan(sizeof head);
  const auto members = core::Members::decode(list);
  const bool whole = head.magic == kMagic && head.crc == crc_of(head, list) && members;
  if (!whole || c.at.pos % 8 != 0 || head.view < value(c.at.last.view)) {
    return Error{Code::kDamaged, 0, "the checkpoint's facts are damaged"};
  }
  if (head.group != group_of(log_id)) {
    return Error{Code::kBadArgument, 0, "the checkpoint belongs to another group"};
  }
  c.view = View{head.view};
  c.config = {{View{head.config_view}, Index{head.config_index}}, *members};
  return c;
}

}  // namespace crane::consensus
