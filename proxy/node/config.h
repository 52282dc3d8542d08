// SPDX-License-Identifier: Apache-2.0
#pragma once
// What crane-run tells a node: one JSON object in a file.  Unknown fields are ignored, so that an
// older node can run under a newer launcher; missing ones have the defaults below.
//
// Threads: plain value.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/layout.h"

namespace crane::node {

struct Config {
  std::string group = "crane";
  std::uint8_t replica = 0;
  std::uint8_t replicas = 1;
  std::string dir;      // group directory; this replica's files are in <dir>/r<i>
  std::string shm_dir;  // on tmpfs; this replica's segment is <shm_dir>/r<i>/segment
  std::string program;
  std::vector<std::string> args;
  std::vector<std::string> env;   // "NAME=value"
  std::vector<std::string> dirs;  // made for the server before it starts
  dmt::Mode mode = dmt::Mode::kSerial;
  dmt::Admission admission = dmt::Admission::kGrant;
  std::uint32_t quantum = 0;  // 0: the mode's default
  std::string record;         // directory for recorded outputs; empty: none
  bool container = true;
  std::vector<std::pair<std::string, std::string>> binds;  // source, target
  std::string libcrane;
  std::uint64_t perturb = 0;
  int cpu = -1;
  bool node_roams = false;  // only the server is bound to `cpu`
  std::uint64_t log_id = 0;
  std::array<std::uint64_t, 4> secret{};  // the seed of virtual randomness (D7)
  std::uint64_t send_buffer = 0;          // 0: the default
  std::string working_directory = "/";

  std::string replica_dir() const { return dir + "/r" + std::to_string(replica); }
  std::string replica_shm_dir() const { return shm_dir + "/r" + std::to_string(replica); }
};

// kBadArgument: `what` of the error names the field.
Result<Config> parse_config(std::string_view json);
// kNotFound when there is no such file.
Result<Config> read_config(const std::string& path);

}  // namespace crane::node
