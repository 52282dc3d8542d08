// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process that shares a node's descriptors (clone with CLONE_FILES) and does nothing.  If the
// node is killed, its clients' sockets stay open, and another node of the host takes them from the
// keeper (pidfd_getfd).  While nothing fails, no message is needed for that.
//
// Sockets that the server has opened to others count as clients' sockets too: they have slots in
// the table.  When the node is gone, the keeper closes all other descriptors.  It ends as soon as
// another node has taken the sockets, however long that takes and whether any node lives meanwhile:
// a running crane-run, or the same command later, starts nodes that continue.  When the group has
// ended (ConnectionTable::is_there), the keeper resets the clients and ends.
//
// Processes: the keeper runs only keep().  Threads: the node's one thread starts it.
// INVARIANT KEEPER-1  A client sees no FIN because a node has ended: its socket stays open until
//                     another node has it, or until the group has ended and the keeper resets it.

#include <sys/types.h>

#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/clients/connection_table.h"

namespace crane::proxy {

class SocketKeeper {
 public:
  // Starts a keeper for the calling process, whose record is `holder`.  Both arguments outlive it.
  // Errors: kSystem; kUnsupported, kDenied: descriptors cannot be taken from it on this host.
  static Result<SocketKeeper> start(ConnectionTable& table, SocketHolder& holder);
  SocketKeeper(SocketKeeper&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pidfd_(std::exchange(other.pidfd_, -1)) {}
  SocketKeeper& operator=(SocketKeeper&&) = delete;
  // The keeper outlives the object; it also outlives this process if that holds clients' sockets.
  ~SocketKeeper();
  void end() noexcept;

  // Readable when the keeper has ended.  It does not end before this process, unless it is killed.
  int pidfd() const noexcept { return pidfd_; }

 private:
  SocketKeeper(pid_t pid, int pidfd) noexcept : pid_(pid), pidfd_(pidfd) {}

  pid_t pid_;
  int pidfd_;
};

// Opens the clients' sockets of one process in this process as well.  Errors: as for start().
Result<std::vector<int>> take_sockets(const ConnectionTable& table, const SocketHolder& holder);

// `holder`'s sockets were taken: its process may close them.
void sockets_taken(SocketHolder& holder) noexcept;

}  // namespace crane::proxy
