// SPDX-License-Identifier: Apache-2.0
#pragma once
// The status of a node in a group of three connected voters.

#include <cstdint>

#include "proxy/host/status.h"

namespace crane::node {

inline NodeStatus status_of_three(std::uint8_t replica, const char* role, std::uint8_t leader) {
  NodeStatus s;
  s.group = "shop";
  s.replica = replica;
  s.replicas = 3;
  s.role = role;
  s.leader = leader;
  for (std::uint8_t i = 0; i < 3; ++i) {
    consensus::MemberStatus m;
    m.id = ReplicaId{i};
    m.role = consensus::MemberRole::kVoter;
    m.connected = true;
    m.streaming = true;
    s.log.members.push_back(m);
    replica::PeerView peer;
    peer.was_there = true;
    peer.reported.emplace().runs = true;
    peer.reported->takes_clients = i == leader;
    if (i != replica) s.peers[i] = peer;
  }
  s.readiness.runs = true;
  s.readiness.takes_clients = replica == leader;
  return s;
}

}  // namespace crane::node
