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

// Beside it `restored`, with the log's id as eight bytes, which `crane-ctl restore` makes: the
// group was brought back from a backup, and one checkpoint is all that there is of its log.  A
// replica that was no member since then takes its place there (store/recovery.h, take_place()).
bool was_restored(const std::string& directory, std::uint64_t log_id);

}  // namespace crane::consensus
