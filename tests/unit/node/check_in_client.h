// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process that checks in like libcrane.so.

#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>

#include "dmt/segment.h"

namespace crane::test {

// Returns a descriptor connected to the socket `listener`; the caller closes it.
inline int connect_to(int listener) {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  REQUIRE(::getsockname(listener, address, &size) == 0);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(fd, address, size) == 0);
  return fd;
}

// Sends the first `bytes` bytes of a check-in.
inline void send_check_in(int fd, std::uint16_t process, std::size_t bytes = sizeof(dmt::CheckIn)) {
  const dmt::CheckIn in{dmt::kLayoutVersion, process, 1};
  REQUIRE(::send(fd, &in, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes));
}

}  // namespace crane::test
