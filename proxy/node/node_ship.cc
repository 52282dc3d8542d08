// SPDX-License-Identifier: Apache-2.0
// The node's part in checkpoints that travel between hosts (shipping.h).
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "proxy/node/node.h"
#include "proxy/node/recovery/shipping.h"

namespace crane::node {
namespace {

// One that was asked for and did not come is asked for again after this long.
constexpr std::int64_t kAskAgainNs = 5'000'000'000;

}  // namespace

void Node::open_shipping() {
  if (!ships(config_)) return;
  ShippingHooks hooks;
  hooks.awake = [this] { awake(); };
  hooks.knows = [this](ReplicaId who) { return knows(who); };
  hooks.lacked = [this](ReplicaId who, Index behind) { take_one_for(who, behind); };
  shipping_ = std::make_unique<Shipping>(loop_.base(), config_, std::move(hooks));
}

// Its first life, and one that was invited only, may begin as a new replica.
bool Node::knows(ReplicaId who) const {
  constexpr std::uint32_t kFirstLife = 1;
  const auto members = consensus_->members();
  return std::any_of(members.begin(), members.end(), [&](const consensus::MemberStatus& m) {
    return m.id == who && (m.incarnation > kFirstLife || value(m.last) > 0);
  });
}

// The leader's part: a replica that cannot begin without a checkpoint asks everybody.
void Node::take_one_for(ReplicaId who, Index behind) {
  if (proxy_ == nullptr || !proxy_->leading() || now_ns_ < helped_ns_ + kAskAgainNs) return;
  const auto answer = nlohmann::json::parse(ask_for_checkpoint(nlohmann::json::object()));
  if (!answer.value("ok", false)) return;
  helped_ns_ = now_ns_;
  spdlog::info("replica {} asks for a checkpoint behind entry {}: {}", value(who), value(behind),
               answer.value("message", ""));
}

}  // namespace crane::node
