// SPDX-License-Identifier: Apache-2.0
#pragma once
// A loopback port for tests with real connections, and helpers for both ends of one.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>

namespace crane::proxy {

struct LoopbackListener {
  // `flags`: for socket(), e.g. SOCK_NONBLOCK.
  explicit LoopbackListener(int flags = 0) : fd(::socket(AF_INET, SOCK_STREAM | flags, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(fd, 16) == 0);
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  }
  ~LoopbackListener() { ::close(fd); }
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  std::uint16_t port() const noexcept { return ntohs(address.sin_port); }
  void connect(int client) const {
    REQUIRE(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  // Returns a client's end, which the caller closes.
  int connect() const {
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connect(client);
    return client;
  }

  const int fd;
  sockaddr_in address{};
};

// Returns the next bytes of a socket, or "error N" with an errno.
inline std::string receive(int fd) {
  char text[200];
  const ssize_t got = ::recv(fd, text, sizeof text, 0);
  return got < 0 ? "error " + std::to_string(errno)
                 : std::string(text, static_cast<std::size_t>(got));
}

// Turns a loop until the condition holds. Returns false if it did not within twenty seconds.
template <typename Condition, typename Turn>
bool turned_until(Condition&& condition, Turn&& turn) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    turn();
  }
  return true;
}

}  // namespace crane::proxy
