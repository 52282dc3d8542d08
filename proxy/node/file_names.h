// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel calls the server's files, before a checkpoint and after a restore.
//
// Virtual inode numbers are remembered by the kernel's (device, inode) (dmt/inodes.h).  A restored
// server has another overlay and copies of what it had changed, so both differ; the same paths, and
// the same descriptors of files that have no path any more, tell which is which.
//
// Threads: the node's; the server is at rest, or its threads have not got a turn yet.

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dmt/base/result.h"
#include "dmt/layout.h"

namespace crane::node {

// {"paths": {path: [device, inode]}, "descriptors": {"pid/fd": [device, inode]}}: what lies in
// `upper`, the overlay's, and in the container's own file systems, as process `first` sees it; and
// what the processes of the server have open.  pid is the one inside of the container.
nlohmann::json file_names(const dmt::Layout& w, pid_t first, const std::string& upper);

// Renames the records of the segment by what both lists have in common.  kDamaged: `before` is no
// such list.
Outcome rename_files(dmt::Layout& w, const nlohmann::json& before, const nlohmann::json& now);

}  // namespace crane::node
