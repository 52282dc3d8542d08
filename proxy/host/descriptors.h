// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prepares the descriptor table: a node needs one descriptor per client, even if its server may
// open fewer.
//
// In a process with several threads (or a keeper of its sockets) the kernel enlarges the descriptor
// table only after an RCU grace period.  accept(2) then takes 10 to 20 ms; meanwhile the leader
// writes no heartbeat and answers nothing, and the others elect another leader.  So the table gets
// its size before there is a second thread.
//
// Threads: call before the process has a second one.
// INVARIANT DESCRIPTORS-1  up to kDescriptorsReady descriptors, or the limit if that is lower, no
//                          call of the node waits for a larger table.
//                          call of the node's waits for a larger table.

#include <sys/resource.h>

namespace crane::node {

// A table of this size takes half a megabyte of kernel memory.
inline constexpr rlim_t kDescriptorsReady = 65536;

// Raises the soft limit to the hard one and enlarges the table.  Returns the previous soft limit,
// which the server gets.
rlim_t prepare_descriptors() noexcept;

}  // namespace crane::node
