// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual TCP sockets as the system calls see them: blocking, partial transfers, end of file, reset
// and time-outs on top of dmt/connections.h.  No system call is made on the data path.
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
// To a listener of the server's own, or to elsewhere.
int connect(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
            socklen_t size) noexcept;
// Of a connection: what it came to, if the server connected it.
int connect_again(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
                  socklen_t size) noexcept;
// Of a listener: AF_UNSPEC ends it.
int connect_listener(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
                     socklen_t size) noexcept;
// Waits for what begin_unix_connect() comes to; a nonblocking socket is told EINPROGRESS.
int await_connected(Turn& turn, int fd, std::uint32_t file) noexcept;
// What a nonblocking connect came to, told once: an error number.
int take_connect_error(dmt::Layout& w, std::uint32_t file) noexcept;
int shutdown(Turn& turn, int, std::uint32_t file, int how) noexcept;
int name(int, std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* size) noexcept;
int connection_name(std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* size) noexcept;

// --- data ----------------------------------------------------------------------------------------

// recv(2) with `flags`; *received_flags gets MSG_TRUNC and the like when given.
ssize_t receive(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers, int flags) noexcept;
// send(2) with `flags`.
ssize_t send(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers, int flags) noexcept;

// sendfile(2) from a plain descriptor, straight into the output ring: `size` bytes at `at`, which
// moves on by what was sent.  REQUIRES: takes_files.
bool takes_files(const FileRecord& f) noexcept;
ssize_t send_file(Turn& turn, int fd, std::uint32_t file, int in, off_t& at,
                  std::size_t size) noexcept;

// --- options -------------------------------------------------------------------------------------

int get_option(dmt::Layout& w, std::uint32_t file, int level, int option, void* value,
               socklen_t* size) noexcept;
int set_option(Turn& turn, std::uint32_t file, int level, int option, const void* value,
               socklen_t size) noexcept;
// One of those that are a number and are only kept.  Needs no turn.
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
// IP_FREEBIND and its kin: bind takes addresses that the machine does not have.
bool binds_anywhere(std::uint32_t file) noexcept;
// Bound to the loopback interface (SO_BINDTODEVICE).
bool is_of_loopback(std::uint32_t file) noexcept;
// A linger of 0 seconds that was set before there was a connection.
void apply_linger(dmt::Layout& w, std::uint32_t file) noexcept;
// .. and SO_OOBINLINE.
void apply_urgent_inline(dmt::Layout& w, std::uint32_t file) noexcept;

// How a data call on `file` waits: the descriptor's mode, MSG_DONTWAIT, the time-out.
WaitPolicy wait_policy_of(const dmt::Layout& w, std::uint32_t file, int flags,
                          std::int64_t timeout_ns) noexcept;

}  // namespace crane::tcp_socket
