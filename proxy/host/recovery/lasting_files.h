// SPDX-License-Identifier: Apache-2.0
#pragma once
// Directories of the server that outlive the group (checkpoint/base.h, runtime/launcher/lasting.h):
// where the files of a server that ends are kept, and which position of the history they belong to.
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
  // `used`: this node's files are kept at all.
  LastingFiles(const Config& config, bool used) noexcept : config_(config), used_(used) {}

  // Removes what this replica's life before left: it begins elsewhere, and the others have come
  // further.  Where the files of a server that ends go; "": they are not kept.
  std::string begin();
  // The server runs: its files are whole, all that it begins with is there.
  void server_started(Index applied, std::uint64_t clock);
  void move(Index applied, std::uint64_t clock) { position_.move(value(applied), clock); }
  // In order; `ended`: the server has ended by itself.
  void end(Index applied, std::uint64_t clock, bool ended);

 private:
  const Config& config_;
  const bool used_;
  checkpoint::PositionFile position_;
};

}  // namespace crane::node
