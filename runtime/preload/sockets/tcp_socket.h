// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual TCP sockets for the system calls: blocking, partial transfers, end of file, reset and
// time-outs on top of dmt/connections.h. The data path makes no system call.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "dmt/connections.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::tcp_socket {

// --- sockets -------------------------------------------------------------------------------------

int create(Turn& turn, int domain, int type, int protocol) noexcept;
int bind(Turn& turn, int, std::uint32_t file, const struct sockaddr* a, socklen_t size) noexcept;
int listen(Turn& turn, int, std::uint32_t file, int backlog) noexcept;
int accept(Turn& turn, int fd, std::uint32_t file, struct sockaddr* a, socklen_t* size,
           int flags) noexcept;
// Connects to a listener of the server itself, or to another host.
int connect(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
            socklen_t size) noexcept;
// connect() of a connected socket; returns the result of the first connect if the server made it.
int connect_again(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
                  socklen_t size) noexcept;
// connect() of a listener: AF_UNSPEC stops listening.
int connect_listener(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
                     socklen_t size) noexcept;
// Waits for the result of begin_unix_connect(); a nonblocking socket gets EINPROGRESS.
int await_connected(Turn& turn, int fd, std::uint32_t file) noexcept;
// Returns the error number of a nonblocking connect once.
int take_connect_error(dmt::Layout& w, std::uint32_t file) noexcept;
int shutdown(Turn& turn, int, std::uint32_t file, int how) noexcept;
int name(int, std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* size) noexcept;
int connection_name(std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* size) noexcept;

// --- data ----------------------------------------------------------------------------------------

// recv(2) with `flags`; *received_flags gets MSG_TRUNC and the like when given.
ssize_t receive(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers, int flags) noexcept;
// send(2) with `flags`.
ssize_t send(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers, int flags) noexcept;

// sendfile(2) from a plain descriptor directly into the output ring: `size` bytes at `at`; advances
// `at` by the bytes sent. REQUIRES: takes_files.
bool takes_files(const FileRecord& f) noexcept;
ssize_t send_file(Turn& turn, int fd, std::uint32_t file, int in, off_t& at,
                  std::size_t size) noexcept;

// --- options -------------------------------------------------------------------------------------

int get_option(dmt::Layout& w, std::uint32_t file, int level, int option, void* value,
               socklen_t* size) noexcept;
int set_option(Turn& turn, std::uint32_t file, int level, int option, const void* value,
               socklen_t size) noexcept;
// Returns an option that is a number and is only stored. Needs no turn.
int option_of(std::uint32_t file, int level, int option) noexcept;
// An accepted connection starts with its listener's options.
void inherit_options(dmt::Layout& w, std::uint32_t listener, std::uint32_t connection) noexcept;
// SO_RCVTIMEO and SO_SNDTIMEO, ns; 0 = none.  Also of unix streams.
std::int64_t receive_timeout(std::uint32_t file) noexcept;
std::int64_t send_timeout(std::uint32_t file) noexcept;
// SO_RCVLOWAT of a unix stream, bytes, at least 1.
std::uint32_t low_water(std::uint32_t file) noexcept;
bool reuses_port(std::uint32_t file) noexcept;
bool is_only_ipv6(std::uint32_t file) noexcept;
// IP_FREEBIND and similar options: bind accepts addresses that the machine does not have.
bool binds_anywhere(std::uint32_t file) noexcept;
// Bound to the loopback interface (SO_BINDTODEVICE).
bool is_of_loopback(std::uint32_t file) noexcept;
// Applies a linger of 0 seconds that was set before the socket was connected.
void apply_linger(dmt::Layout& w, std::uint32_t file) noexcept;
// Applies SO_OOBINLINE that was set before the socket was connected.
void apply_urgent_inline(dmt::Layout& w, std::uint32_t file) noexcept;

// How a data call on `file` waits, from the descriptor's mode, MSG_DONTWAIT and the time-out.
WaitPolicy wait_policy_of(const dmt::Layout& w, std::uint32_t file, int flags,
                          std::int64_t timeout_ns) noexcept;

}  // namespace crane::tcp_socket
