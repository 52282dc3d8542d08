// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connection for checkpoints between hosts: a secure link of a separate kind (kVisitPlane) to
// the port of the other replica's fabric.  The group's secret is its only credential (LINK-S1,
// LINK-S2 of consensus/fabric/secure_link.h).
//
// Threads: one; put() and get() block while the other side is silent, up to a limit.

#include <array>
#include <memory>
#include <string>

#include "checkpoint/transfer.h"
#include "consensus/consensus.h"
#include "consensus/fabric/secure_link.h"

namespace crane::node {

class ShipLink final : public checkpoint::Wire {
 public:
  // `link` is open or being opened.
  ShipLink(std::unique_ptr<consensus::SecureLink> link, int silence_ms);

  // Blocks until the link is open.
  Outcome open();
  Outcome put(std::span<const std::byte> bytes) override;
  Result<std::size_t> get(std::span<std::byte> to) override;

 private:
  bool wait(short events) const;
  Error lost() const;

  std::unique_ptr<consensus::SecureLink> link_;
  const int silence_ms_;
};

// The dialling replica, and the addresses of all replicas.
struct ShipParty {
  ReplicaId self{};
  std::vector<consensus::Endpoint> endpoints;  // one per replica
  consensus::GroupSecret secret{};
};
// All replicas except `party.self`; `why` of a failed dial is a sentence.  Copies `party`.
checkpoint::Others others_of(const ShipParty& party);

}  // namespace crane::node
