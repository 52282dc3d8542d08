// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/lasting_files.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <filesystem>

namespace crane::node {

std::string LastingFiles::begin() {
  if (!used_) return "";
  std::error_code ignored;
  for (const std::string& old : {config_.left_dir(), config_.replica_dir() + "/position"}) {
    std::filesystem::remove_all(old, ignored);
  }
  return config_.left_dir();
}

void LastingFiles::server_started(Index applied, std::uint64_t clock) {
  if (!used_) return;
  const Outcome opened = position_.open(config_.replica_dir());
  if (!opened.ok()) {
    spdlog::error("{}: {}; this replica's data will be ignored when the group starts again",
                  config_.replica_dir(), opened.error().message());
  }
  move(applied, clock);
}

void LastingFiles::end(Index applied, std::uint64_t clock, bool ended) {
  move(applied, clock);
  position_.end(ended ? checkpoint::Position::kEnded : checkpoint::Position::kStopped);
}

}  // namespace crane::node
