// SPDX-License-Identifier: Apache-2.0
#pragma once
// Unix stream sockets before they are connected: bind, listen, connect and accept between the
// server's own processes, and connect to a socket of the host (dmt/outbound.h). The kernel makes
// the connections. The segment records which thread waits for which, and in which order connections
// are accepted. A listener is found by the hash of its name.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include <sys/socket.h>

#include "runtime/preload/descriptors/fd.h"

namespace crane::unix_socket {

// Returns the server's own socket of this kind that is bound to the name; 0 = none.
std::uint32_t find(dmt::Layout& w, FileKind kind, const struct sockaddr* a, socklen_t n) noexcept;

int create(Turn& turn, int type, int protocol) noexcept;
int pair(Turn& turn, int type, int protocol, int* fds) noexcept;
int bind(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept;
int listen(Turn& turn, int fd, std::uint32_t file, int backlog) noexcept;
int connect(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept;
// shutdown() of a socket that is not a stream.
int shutdown(Turn& turn, int fd, std::uint32_t file, int how) noexcept;
int accept(Turn& turn, int fd, std::uint32_t file, struct sockaddr* a, socklen_t* n,
           int flags) noexcept;

// --- connections to sockets of the host ---------------------------------------------------------

inline bool is_to_host(const FileRecord& f) noexcept {
  return f.kind == FileKind::kConnection && f.port == AF_UNIX;
}
// getsockname: the kernel's name of the server's end; getpeername: the path given to connect.
CRANE_REQUIRES_TURN int name(int fd, std::uint32_t file, bool of_peer, struct sockaddr* a,
                             socklen_t* n) noexcept;
// Refuses credentials of the other end, and descriptors for it: another host could not continue
// with them.
int refuse_credentials() noexcept;

}  // namespace crane::unix_socket
