// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is left of a supervisor that was killed while CRIU was bringing its server back: parts of
// CRIU that outlive it, and a server that is not whole; and of CRIU that was killed: directories.
//
// Threads: any.

#include <string>

namespace crane::checkpoint {

// Ends those among the calling process' children: it is the subreaper that they came to.
// `directory`: the replicas' ServerOptions::directory are in it.  Everything else that a node or a
// supervisor leaves cleans up and ends by itself.
void end_orphans(const std::string& directory);

// Removes the empty directories in /tmp of every CRIU that has ended (criu_shim.c names them),
// which one that was killed leaves.
void remove_directories_of_criu();

// Those, and the control groups of workers that were killed (background.h).
void remove_what_was_left();

}  // namespace crane::checkpoint
