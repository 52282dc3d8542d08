// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connection over which checkpoints travel between hosts: a secure link of its own kind
// (kVisitPlane) to the port of the other replica's fabric, with the group's secret as its only
// credential (LINK-S1, LINK-S2 of consensus/fabric/secure_link.h).
//
// Threads: one; put() and get() block, for as long as the other side may be silent.

#include <array>
#include <memory>
#include <string>

#include "checkpoint/transfer.h"
#include "consensus/consensus.h"
#include "consensus/fabric/secure_link.h"

namespace crane::node {

class ShipLink final : public checkpoint::Wire {
 public:
  // `link` is open, or about to be.
  ShipLink(std::unique_ptr<consensus::SecureLink> link, int silence_ms);

  // Until the link is open.
  Outcome open();
  Outcome put(std::span<const std::byte> bytes) override;
  Result<std::size_t> get(std::span<std::byte> to) override;

 private:
  bool wait(short events) const;
  Error lost() const;

  std::unique_ptr<consensus::SecureLink> link_;
  const int silence_ms_;
};

// The replica that dials, and where the others are.
struct ShipParty {
  ReplicaId self{};
  std::vector<consensus::Endpoint> endpoints;  // one per replica
  consensus::GroupSecret secret{};
};
// All but itself; `why` of a failed dial is a sentence.  What it gives keeps `party` in copy.
checkpoint::Others others_of(const ShipParty& party);

}  // namespace crane::node
