// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file beside a replica's memory, not in it: says that this replica was a member of the group
// once, so that empty memory is lost memory (C5) and not a first start.  Consensus::open() makes
// it; an owner that learns from others what its host has forgotten makes it before.
//
// Threads: plain functions.

#include <cstdint>
#include <string>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"

namespace crane::consensus {

// In `directory`, which is Options::lasting_directory.
bool was_member(const std::string& directory, ReplicaId self, std::uint64_t log_id);
Outcome mark_member(const std::string& directory, ReplicaId self, std::uint64_t log_id);

// Beside it `restored-<i>`, which `crane-ctl restore` makes for each replica: the group was brought
// back from a backup, and this replica has said nothing in it since.  It takes its place at the
// checkpoint that it begins with (store/recovery.h, take_place()), once: a replica that loses
// everything later has forgotten what it acknowledged, and is a new member.
// Of a backup with the log behind its checkpoint the mark is that log (log_tail.h), which the
// replica takes into its store first (take_place_with()): so both are gone at once.  The files of
// several replicas may be one with several names.
//
// INVARIANT RESTORED-1  The mark is gone, durably, before its replica says anything to another one.
Outcome mark_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id);
// Where that mark is.
std::string restored_path(const std::string& directory, ReplicaId self);
bool was_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id);
// The path of a mark that holds a log; empty: there is no mark, or it holds none.
std::string restored_tail(const std::string& directory, ReplicaId self, std::uint64_t log_id);
Outcome forget_restored(const std::string& directory, ReplicaId self);

}  // namespace crane::consensus
