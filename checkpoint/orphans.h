// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cleans up after killed processes.  A supervisor killed during a restore leaves processes of CRIU
// and an incomplete server.  A killed CRIU leaves directories.
//
// Threads: any.

#include <string>

namespace crane::checkpoint {

// Ends such processes among the children of the caller, which is their subreaper.  `directory`
// contains the replicas' ServerOptions::directory.  All other processes that a node or a supervisor
// leaves clean up and end without help.
void end_orphans(const std::string& directory);

// Removes the empty directories in /tmp that a killed CRIU leaves (criu_shim.c names them), of
// every CRIU that has ended.
void remove_directories_of_criu();

// Removes those, and the control groups of killed workers (background.h).
void remove_what_was_left();

}  // namespace crane::checkpoint
