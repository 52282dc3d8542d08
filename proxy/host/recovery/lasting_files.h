// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server's directories that outlive the group (checkpoint/base.h, runtime/launcher/lasting.h):
// where the files of an ended server are kept, and the position in the history that they match.
//
// Threads: the node's one thread.
// INVARIANT LAST-3  The position is written before anything that follows it leaves this replica.

#include <string>

#include "checkpoint/position.h"
#include "dmt/base/ids.h"
#include "proxy/host/config.h"

namespace crane::node {

class LastingFiles {
 public:
  // `used`: this node keeps files.
  LastingFiles(const Config& config, bool used) noexcept : config_(config), used_(used) {}

  // Removes the files of this replica's previous process: it begins at another position, and the
  // other replicas are further.  Returns the place for the files of an ended server; "": not kept.
  std::string begin();
  // The server runs: its initial files are complete.
  void server_started(Index applied, std::uint64_t clock);
  void move(Index applied, std::uint64_t clock) { position_.move(value(applied), clock); }
  // The node stops cleanly.  `ended` is true if the server ended by itself.
  void end(Index applied, std::uint64_t clock, bool ended);

 private:
  const Config& config_;
  const bool used_;
  checkpoint::PositionFile position_;
};

}  // namespace crane::node
