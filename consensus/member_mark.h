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
//
// INVARIANT RESTORED-1  The mark is gone, durably, before its replica says anything to another one.
Outcome mark_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id);
bool was_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id);
Outcome forget_restored(const std::string& directory, ReplicaId self);

}  // namespace crane::consensus
