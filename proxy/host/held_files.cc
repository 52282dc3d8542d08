// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/held_files.h"

#include <spdlog/spdlog.h>

#include "checkpoint/machine_files.h"

namespace crane::node {

Outcome hold_files_of_group(Config& config) {
  config.program_file = config.program;
  const std::string record = config.files_record();
  if (record.empty()) return Done{};
  const auto held = checkpoint::ensure_files(record, 0);
  if (!held.ok()) return held.error();
  const checkpoint::GroupFiles& files = held.value();
  config.program_file = checkpoint::located(files, config.program);
  if (files.lost) {
    spdlog::error(
        "the state of this machine's files that the group began with is gone: the server reads {}, "
        "the newest, and earlier checkpoints may be unusable",
        files.state);
  } else if (!files.why_live.empty()) {
    spdlog::info("the server reads this machine's files as they are: {}", files.why_live);
  } else {
    spdlog::debug("the server reads this machine's files as of state {}", files.state);
  }
  return Done{};
}

}  // namespace crane::node
