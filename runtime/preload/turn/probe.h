// SPDX-License-Identifier: Apache-2.0
#pragma once
// Probes of the stall rule (dmt/stall.h) in the server's threads.
//
// Threads: the calling one.

namespace crane {

// Lets the node examine a thread that may be stalled. Called once, in the constructor.
void install_probe_handler() noexcept;

// Returns to the server's processor after a computation for which no other thread waited.
void return_to_processor() noexcept;

}  // namespace crane
