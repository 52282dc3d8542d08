// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sends a message of proxy/replica/messages.h to a peer.
//
// Threads: the node's one thread.

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "proxy/replica/messages.h"

namespace crane::node {

// False: not sent.  A message that was sent may still be lost.
template <typename M>
bool send(consensus::Consensus& group, ReplicaId to, const M& message) {
  return group.send_message(to, replica::message_of(message).bytes());
}

}  // namespace crane::node
