// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file outside a replica's memory which records that this replica was once a member of the group,
// so that empty memory means lost memory (C5) and not a first start.  Consensus::open() creates it.
// An owner that learns from other hosts what its own host has lost creates it earlier.
//
// Threads: plain functions.

#include <cstdint>
#include <string>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"

namespace crane::consensus {

// `directory` is Options::lasting_directory.
bool was_member(const std::string& directory, ReplicaId self, std::uint64_t log_id);
Outcome mark_member(const std::string& directory, ReplicaId self, std::uint64_t log_id);

// `crane-ctl restore` creates the file `restored-<i>` next to the mark for each replica: the group
// was restored from a backup, and this replica has sent no message since.  The replica takes its
// place at the checkpoint that it begins with (store/recovery.h, take_place()), once: if it loses
// everything later, it has forgotten what it acknowledged, and is a new member. If the backup
// contains the log after its checkpoint, the mark is that log (log_tail.h).  The replica reads it
// into its store first (take_place_with()), and removing the mark removes the log as well. The
// marks of several replicas may be hard links to one file.
//
// INVARIANT RESTORED-1  The mark is removed, durably, before its replica sends anything to another
// one.
Outcome mark_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id);
// The path of that mark.
std::string restored_path(const std::string& directory, ReplicaId self);
bool was_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id);
// The path of a mark that contains a log; empty if there is no mark, or it contains no log.
std::string restored_tail(const std::string& directory, ReplicaId self, std::uint64_t log_id);
Outcome forget_restored(const std::string& directory, ReplicaId self);

}  // namespace crane::consensus
