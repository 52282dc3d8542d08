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

}  // namespace crane::consensus
