// SPDX-License-Identifier: Apache-2.0
// The node's part in directories of the server that outlive the group (checkpoint/base.h,
// runtime/launcher/lasting.h).
#include <spdlog/spdlog.h>

#include <cstring>
#include <filesystem>

#include "proxy/node/node.h"

namespace crane::node {

// What a new server's overlay begins as: the files that the one before has left, or the base.
std::string Node::server_begin() const {
  return server_upper_.empty() ? config_.base : server_upper_;
}

// Whatever ends a server, its files are left for the group's next start.  Those of this replica's
// life before are not: it begins elsewhere, and the others have come further.
void Node::keep_server_files() {
  if (!config_.keeps_files || !mode_.member()) return;
  std::error_code ignored;
  for (const std::string& old : {config_.left_dir(), config_.replica_dir() + "/position"}) {
    std::filesystem::remove_all(old, ignored);
  }
  guard_->keep_files(config_.left_dir());
}

// Only now its files are whole: all that it begins with is there.
void Node::note_begin() {
  if (!config_.keeps_files || !mode_.member()) return;
  const Outcome opened = position_.open(config_.replica_dir());
  if (!opened.ok()) {
    spdlog::error(
        "{}: {}: {}; this replica's data will not be looked at when the group starts again",
        config_.replica_dir(), opened.error().what, std::strerror(opened.error().detail));
  }
  position_.move(value(applied()), layout_->scheduler.clock);
}

void Node::note_end() {
  if (layout_ == nullptr || result_ != ExitStatus::kStopped) return;
  position_.move(value(applied()), layout_->scheduler.clock);
  position_.end(exit_reported_ ? checkpoint::Position::kEnded : checkpoint::Position::kStopped);
}

}  // namespace crane::node
