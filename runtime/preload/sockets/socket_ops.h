// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations of sockets by kind of socket, as Linux' proto_ops. FileOps
// (runtime/preload/files/file_ops.h) is the table of kinds.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include <sys/socket.h>

#include "runtime/preload/descriptors/fd.h"

namespace crane {

struct SocketOps {
  int (*bind)(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
              socklen_t n) noexcept;
  int (*listen)(Turn& turn, int fd, std::uint32_t file, int backlog) noexcept;
  int (*accept)(Turn& turn, int fd, std::uint32_t file, struct sockaddr* a, socklen_t* n,
                int flags) noexcept;
  int (*connect)(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
                 socklen_t n) noexcept;
  int (*shutdown)(Turn& turn, int fd, std::uint32_t file, int how) noexcept;
  // Does getpeername or getsockname.
  int (*name)(int fd, std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* n) noexcept;
  int (*get_option)(Turn& turn, int fd, std::uint32_t file, int level, int option, void* value,
                    socklen_t* n) noexcept;
  int (*set_option)(Turn& turn, int fd, std::uint32_t file, int level, int option,
                    const void* value, socklen_t n) noexcept;
  ssize_t (*receive)(Turn& turn, int fd, std::uint32_t file, struct msghdr& m, int flags) noexcept;
  ssize_t (*send)(Turn& turn, int fd, std::uint32_t file, const struct msghdr& m,
                  int flags) noexcept;
};

extern const SocketOps kNoSocket;   // ENOTSOCK
extern const SocketOps kTcpSocket;  // neither listening nor connected
extern const SocketOps kTcpListener;
extern const SocketOps kTcpConnection;
extern const SocketOps kUdpSocket;
extern const SocketOps kUnixSocket;  // neither listening nor connected
extern const SocketOps kUnixListener;
extern const SocketOps kUnixStream;
extern const SocketOps kKernelSocket;

}  // namespace crane
