// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts for the metrics besides the node's status: its process, its file systems, and the newest
// checkpoint on this machine.
//
// Threads: plain values and functions; they read /proc and directories.

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/kept.h"
#include "proxy/host/config.h"

namespace crane::node {

struct ProcessFacts {
  double cpu_seconds = 0;
  double start_unix_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_descriptors = 0;
};
ProcessFacts own_process();

struct FileSystem {
  const char* holds = "";  // "state" or "memory"
  std::string path;
  std::uint64_t bytes = 0, free_bytes = 0;  // free: without root's reserve
};
// The file systems of the group's directory and its shared memory.
std::vector<FileSystem> file_systems_of(const Config& config);

// index 0: there is no checkpoint.
struct NewestCheckpoint {
  std::uint64_t index = 0;
  std::int64_t unix_seconds = 0;  // when it was made
  std::uint64_t bytes = 0;        // on disk
};
NewestCheckpoint newest_checkpoint(checkpoint::Newest& newest, const Config& config);

}  // namespace crane::node
