// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of the disks a group takes, and how fast that grows, for crane-ctl status.
//
// Growth needs no record of its own: each kept checkpoint says when it was taken, how large the
// server's files were then, and how many bytes the log had.
//
// Threads: plain functions.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/kept.h"

namespace crane::launcher {

// Bytes on disk below a directory, holes not counted; 0: it is not there.  nullopt: it cannot be
// read, or has more than `most` files: status must not take long.
inline constexpr std::uint64_t kFilesMost = 100'000;
std::optional<std::uint64_t> bytes_on_disk(const std::string& path,
                                           std::uint64_t most = kFilesMost);

// Per hour, between the oldest and the newest of the checkpoints, of one log.
struct Growth {
  std::int64_t seconds = 0;      // between them
  std::int64_t files_bytes = 0;  // of the server's files; negative: they shrank
  std::int64_t log_bytes = 0;
};
// nullopt: there are not two of different times.
std::optional<Growth> growth_of(const std::vector<checkpoint::Kept>& kept);

// Adds `disk` to the rows of this machine's replicas, and `growth` to the group's.
void add_sizes(nlohmann::json& summary, const std::string& home);
// A line for people; "": nothing is known.
std::string sizes_text(const nlohmann::json& summary);
// "12.3 MB"
std::string size_text(std::uint64_t bytes);

}  // namespace crane::launcher
