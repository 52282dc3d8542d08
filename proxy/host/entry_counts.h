// SPDX-License-Identifier: Apache-2.0
#pragma once
// The number of committed entries per type, for checkpoints, the status and live checking.

#include <array>
#include <cstdint>

#include "dmt/sequence/entry.h"

namespace crane::node {

using EntryCounts = std::array<std::uint64_t, kEntryTypeSlots>;  // by EntryType

}  // namespace crane::node
