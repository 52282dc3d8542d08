// SPDX-License-Identifier: Apache-2.0
#include "eval/strategies/follower.h"

#include <cstring>
#include <utility>

namespace crane::eval {
namespace {

using consensus::Fabric;
using consensus::FabricEvent;
using consensus::Key;
using consensus::kNoKey;
using consensus::Token;

constexpr std::uint64_t kKeyMagic = 0x79654b65764c7645;
struct KeyMessage {
  std::uint64_t magic = kKeyMagic;
  std::uint64_t key = 0;
};

}  // namespace

KeyExchange::KeyExchange(Fabric& fabric, ReplicaId self, ReplicaId leader, std::uint8_t replicas)
    : fabric_(fabric),
      self_(self),
      leader_(leader),
      keys_(replicas, kNoKey),
      given_(replicas, kNoKey),
      sent_(replicas, false) {}

bool KeyExchange::partner(std::uint8_t peer) const noexcept {
  return ReplicaId{peer} != self_ && (self_ == leader_ || ReplicaId{peer} == leader_);
}

void KeyExchange::on_event(const FabricEvent& event) {
  KeyMessage m;
  if (event.kind != FabricEvent::Kind::kRequest || event.data.size() != sizeof m) return;
  std::memcpy(&m, event.data.data(), sizeof m);
  if (m.magic == kKeyMagic) keys_[value(event.peer)] = Key{m.key};
}

bool KeyExchange::done() {
  bool all = true;
  for (std::uint8_t i = 0; i < keys_.size(); ++i) {
    if (!partner(i)) continue;
    const ReplicaId peer{i};
    if (!sent_[i] && fabric_.connected(peer)) {
      if (given_[i] == kNoKey) {
        const auto key = fabric_.permit_writes(peer);
        if (key.ok()) given_[i] = key.value();
      }
      const KeyMessage m{kKeyMagic, value(given_[i])};
      sent_[i] = given_[i] != kNoKey && fabric_.send_request(peer, std::as_bytes(std::span(&m, 1)));
    }
    all = all && sent_[i] && keys_[i] != kNoKey;
  }
  return all;
}

Scanner::Scanner(Fabric& fabric, const Area& area, OnEntry on_entry)
    : ring_(ring_of(fabric, area)), on_entry_(std::move(on_entry)) {}

void Scanner::look() {
  consensus::core::EntryHeader header;
  while (ring_.valid_at(at_, header)) {
    at_ = consensus::core::LogRing::after(header);
    if (on_entry_) on_entry_(at_.last.index, ring_.payload(header));
  }
}

ApusFollower::ApusFollower(Fabric& fabric, ReplicaId self, ReplicaId leader, Key key,
                           const Area& area, Scanner::OnEntry store)
    : fabric_(fabric),
      self_(self),
      leader_(leader),
      key_(key),
      area_(area),
      store_(std::move(store)),
      replies_(4 * kOutstandingMax),
      scanner_(fabric, area, [this](Index index, std::span<const std::byte> payload) {
        if (store_) store_(index, payload);
        reply(index);
      }) {}

void ApusFollower::reply(Index index) {
  Reply& r = replies_[value(index) % replies_.size()];
  r = make_reply(index, area_.log_id);
  fabric_.write(leader_, key_, area_.reply(self_), std::as_bytes(std::span(&r, 1)), Token{0});
}

}  // namespace crane::eval
