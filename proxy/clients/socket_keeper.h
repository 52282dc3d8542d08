// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process that shares a node's descriptors (clone with CLONE_FILES) and does nothing: a node that
// is killed leaves its clients' sockets open, and another node of the host takes them out of it
// (pidfd_getfd).  Nothing is sent for that while nothing fails.
//
// Sockets that the server has opened to others are clients' here, too: they have slots in the
// table. When the node is gone the keeper closes all descriptors that are no clients' sockets.  It
// ends as soon as another node has taken those, however long that takes and whether any node lives
// meanwhile: a crane-run that lives, or the same command later, starts nodes that go on.  When the
// group has ended (ConnectionTable::is_there) it resets the clients and ends.
//
// Processes: the keeper runs keep() only.  Threads: the node's one thread starts it.
// INVARIANT KEEPER-1  A client sees no FIN because a node has ended: its socket stays open until
//                     another node has it, or the group has ended and it is reset.

#include <sys/types.h>

#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/clients/connection_table.h"

namespace crane::proxy {

class SocketKeeper {
 public:
  // Starts it, for the calling process, whose record `holder` is.  Both outlive it.
  // Errors: kSystem; kUnsupported, kDenied: descriptors cannot be taken out of it here.
  static Result<SocketKeeper> start(ConnectionTable& table, SocketHolder& holder);
  SocketKeeper(SocketKeeper&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pidfd_(std::exchange(other.pidfd_, -1)) {}
  SocketKeeper& operator=(SocketKeeper&&) = delete;
  // It outlives the object, and this process when that holds clients' sockets.
  ~SocketKeeper();
  void end() noexcept;

  // Readable once it has ended, which it does not before this process unless it is killed.
  int pidfd() const noexcept { return pidfd_; }

 private:
  SocketKeeper(pid_t pid, int pidfd) noexcept : pid_(pid), pidfd_(pidfd) {}

  pid_t pid_;
  int pidfd_;
};

// The clients' sockets of one process, opened in this one as well.  Errors: as of start().
Result<std::vector<int>> take_sockets(const ConnectionTable& table, const SocketHolder& holder);

// `holder`'s sockets were taken: it may close them.
void sockets_taken(SocketHolder& holder) noexcept;

}  // namespace crane::proxy
