// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel calls the server's files, before a checkpoint and after a restore.
//
// Virtual inode numbers are remembered by the kernel's (device, inode) (dmt/inodes.h).  A restored
// server has another overlay, copies of what it had changed, and maybe another machine's files, so
// both differ; the same paths, and the same descriptors of files that have no path any more, tell
// which is which.
//
// Threads: the node's; the server is quiescent, or its threads have not got a turn yet.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dmt/base/result.h"
#include "dmt/layout.h"

namespace crane::node {

// {"paths": {path: [device, inode]}, "descriptors": {"pid/fd": [device, inode]}}: what lies in
// `upper`, the overlay's, and in the container's own file systems, as process `first` sees it; and
// what the processes of the `server` have open.  pid is the one inside of the container, the
// server's have that of the host beside it.
nlohmann::json file_names(const std::map<std::uint32_t, pid_t>& server, pid_t first,
                          const std::string& upper);

// Renames the records of the segment by what both lists have in common, and those of files that
// are in neither by where they were found first: as process `first` sees that path.  kDamaged:
// `before` is no such list.
Outcome rename_files(dmt::Layout& w, const nlohmann::json& before, const nlohmann::json& now,
                     pid_t first);

}  // namespace crane::node
