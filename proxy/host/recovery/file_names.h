// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device and inode numbers of the server's files, before a checkpoint and after a restore.
//
// Virtual inode numbers are stored by the kernel's (device, inode) (dmt/inodes.h).  A restored
// server has another overlay, copies of the files that it had changed, and possibly another
// machine's files, so both numbers differ.  Files are matched by equal paths, or by equal
// descriptors if they have no path any more.
//
// Threads: the node's; the server is quiescent, or its threads have not had a turn yet.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dmt/base/result.h"
#include "dmt/layout.h"

namespace crane::node {

// {"paths": {path: [device, inode]}, "descriptors": {"pid/fd": [device, inode]}}.  Paths: files in
// `upper`, the overlay's directory, and in the container's own file systems, as process `first`
// sees them.  Descriptors: files that the processes of `server` have open.  pid is the pid inside
// the container; `server` maps it to the pid on the host.
nlohmann::json file_names(const std::map<std::uint32_t, pid_t>& server, pid_t first,
                          const std::string& upper);

// Renames the records of the segment by the entries that both lists have in common.  A file in
// neither list is looked up at the path where it was first found, as process `first` sees it.
// kDamaged: `before` is not such a list.
Outcome rename_files(dmt::Layout& w, const nlohmann::json& before, const nlohmann::json& now,
                     pid_t first);

}  // namespace crane::node
