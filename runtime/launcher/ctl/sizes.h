// SPDX-License-Identifier: Apache-2.0
#pragma once
// Disk usage of a group and its growth, for crane-ctl status.
//
// Growth is computed from the kept checkpoints: each records its time, the size of the server's
// files and the bytes of the log.
//
// Threads: plain functions.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/kept.h"

namespace crane::launcher {

// Bytes on disk below a directory, without holes; 0 if it does not exist.  nullopt if it cannot be
// read, or contains more than `most` files: status must not take long.
inline constexpr std::uint64_t kFilesMost = 100'000;
std::optional<std::uint64_t> bytes_on_disk(const std::string& path,
                                           std::uint64_t most = kFilesMost);

// The growth per hour between the oldest and the newest checkpoint of one log.
struct Growth {
  std::int64_t seconds = 0;      // between the two checkpoints
  std::int64_t files_bytes = 0;  // growth of the server's files; negative: they shrank
  std::int64_t log_bytes = 0;
};
// nullopt: there are no two checkpoints with different times.
std::optional<Growth> growth_of(const std::vector<checkpoint::Kept>& kept);

// With less than this a lost replica may not begin again: its node needs a few files, and a
// checkpoint is unpacked.
inline constexpr std::uint64_t kRoomLeast = 32 << 20;

// Adds `disk` to the rows of this machine's replicas, and `growth` and `free_bytes` to the group's.
void add_sizes(nlohmann::json& summary, const std::string& home);
// The lines for `status`; "": nothing is known.
std::string sizes_text(const nlohmann::json& summary);

}  // namespace crane::launcher
