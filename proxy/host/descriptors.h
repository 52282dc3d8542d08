// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many descriptors a node has room for: one for each client, whatever its server may open.
//
// The kernel enlarges the table of a process with several threads (or a keeper of its sockets) only
// after all processors have been seen at rest.  accept(2) then takes 10 to 20 ms, while the leader
// writes no heartbeat and answers nothing, and the others elect another one.  So the table has its
// size before there is a second thread.
//
// Threads: before the process has a second one.
// INVARIANT DESCRIPTORS-1  up to kDescriptorsReady descriptors, or the limit when that is lower, no
//                          call of the node's waits for a larger table.

#include <sys/resource.h>

namespace crane::node {

// Half a megabyte of the kernel's memory.
inline constexpr rlim_t kDescriptorsReady = 65536;

// Raises the soft limit to the hard one and enlarges the table.  Returns the soft limit before:
// what the server is to find.
rlim_t prepare_descriptors() noexcept;

}  // namespace crane::node
