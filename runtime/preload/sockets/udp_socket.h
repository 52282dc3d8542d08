// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual UDP sockets for the system calls, on top of dmt/datagrams.h. A server's sockets reach
// each other by loopback, by the address of the one interface (interfaces.h), and in multicast
// groups. Datagrams to other hosts are dropped, as on a network where no host listens. They are
// counted, and a message reports the 1st, 10th, 100th ... of them.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "dmt/datagrams.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::udp_socket {

bool is_udp(int type, int protocol) noexcept;
int create(Turn& turn, int domain, int type) noexcept;
int bind(Turn& turn, int, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept;
int connect(Turn& turn, int, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept;
int shutdown(Turn& turn, int, std::uint32_t file, int how) noexcept;
int name(int, std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* n) noexcept;

ssize_t receive(Turn& turn, int fd, std::uint32_t file, struct msghdr& m, int flags) noexcept;
ssize_t send(Turn& turn, int, std::uint32_t file, const struct msghdr& m, int flags) noexcept;

int get_option(Turn& turn, int, std::uint32_t file, int level, int option, void* value,
               socklen_t* n) noexcept;
int set_option(Turn& turn, int, std::uint32_t file, int level, int option, const void* value,
               socklen_t n) noexcept;

}  // namespace crane::udp_socket
