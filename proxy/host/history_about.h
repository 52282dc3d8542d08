// SPDX-License-Identifier: Apache-2.0
#pragma once
// The description of a server in a recorded history: how it was started, and with which builds of
// the server and of Crane.
//
// Threads: plain functions; they read files.

#include <cstdint>
#include <string>
#include <string_view>

#include "dmt/base/result.h"
#include "proxy/host/config.h"

namespace crane::node {

struct HistoryAbout {
  Config config;  // without directories, library, secrets, and settings for clients
  std::uint32_t layout_version = 0;
  std::uint64_t library_digest = 0, program_digest = 0;  // setup::file_digest()
  std::string log_digest;                                // checkpoint::digest_of_log()
};

std::string history_about(const Config& config);
// kDamaged: not the output of history_about().
Result<HistoryAbout> parse_history_about(std::string_view json);

}  // namespace crane::node
