// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many entries of each type were committed: in a checkpoint, in the status, for live checking.

#include <array>
#include <cstdint>

#include "dmt/sequence/entry.h"

namespace crane::node {

using EntryCounts = std::array<std::uint64_t, kEntryTypeSlots>;  // by EntryType

}  // namespace crane::node
