// SPDX-License-Identifier: Apache-2.0
#pragma once
// Probes of the stall rule (dmt/stall.h) in the server's threads.
//
// Threads: the calling one.

namespace crane {

// Lets the node look at a thread that may be stalled.  Once, in the constructor.
void install_probe_handler() noexcept;

// Back to the server's processor, after a computation that no other thread waited for.
void come_home() noexcept;

}  // namespace crane
