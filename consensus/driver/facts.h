// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of Checkpoint::facts: what a replica that begins in the middle of the log must know of
// its group in addition to its place.
//
// A replica that begins at a checkpoint does not have the CONFIG entries before it, and they may
// have left every ring.  It also must not follow a leader of an older view than the one in which
// the place was known to be committed (CORE-B3, CORE-C5).
//
// Threads: plain functions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/core/step.h"
#include "dmt/base/result.h"

namespace crane::consensus {

std::vector<std::byte> encode_facts(std::uint64_t log_id, View view, const core::ConfigAt& config);

// At index 0 the members are `first`.  kDamaged: the facts are invalid; kBadArgument: they belong
// to another group.
Result<core::Checkpoint> decode_checkpoint(const Checkpoint& checkpoint, std::uint64_t log_id,
                                           const core::Members& first);

}  // namespace crane::consensus
