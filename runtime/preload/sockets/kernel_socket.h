// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sockets with messages that the kernel keeps: unix datagrams by name, and netlink. Kernel calls do
// not block; a thread that must wait does so in the scheduler. The sender finds the receiver by the
// hash of its name (unix_socket.h) and signals that a message has arrived. Messages from outside
// the server are not signalled, so a waiting thread also checks at intervals.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::kernel_socket {

int create(Turn& turn, int domain, int type, int protocol) noexcept;
int bind(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept;
int shutdown(Turn& turn, int fd, std::uint32_t file, int how) noexcept;

ssize_t receive(Turn& turn, int fd, std::uint32_t file, struct msghdr& m, int flags) noexcept;
ssize_t send(Turn& turn, int fd, std::uint32_t file, const struct msghdr& m, int flags) noexcept;

}  // namespace crane::kernel_socket
