// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many entries of each type were committed: in a checkpoint, in the status, for live checking.

#include <array>
#include <cstddef>
#include <cstdint>

namespace crane::node {

inline constexpr std::size_t kEntryTypes = 17;
using EntryCounts = std::array<std::uint64_t, kEntryTypes>;  // by EntryType

}  // namespace crane::node
