// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace crane::setup {
namespace {

constexpr int kBacklogLeast = 511;  // the group takes what waits during a leader change

Result<int> open_one(const std::string& address, std::uint16_t port, int backlog) {
  sockaddr_storage where{};
  socklen_t size = sizeof(sockaddr_in);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&where);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&where);
  if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    size = sizeof *v6;
  } else {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) != 1) v4->sin_addr.s_addr = INADDR_ANY;
  }
  const int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return system_error("make a socket");
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &yes, sizeof yes);
  if (bind(fd, reinterpret_cast<sockaddr*>(&where), size) == 0 && listen_again(fd, backlog) == 0) {
    return fd;
  }
  const Error why = system_error("listen");
  close(fd);
  return why;
}

}  // namespace

Result<int> listen_on(const std::string& address, std::uint16_t port, int backlog) {
  auto opened = open_one(address, port, backlog);
  if (!opened && opened.error().detail == EAFNOSUPPORT) opened = open_one("", port, backlog);
  return opened;
}

// Only listen() finds out whether another socket listens there.
Result<int> hold_port(const std::string& address, std::uint16_t port, int backlog) {
  auto opened = listen_on(address, port, backlog);
  if (opened) shutdown(opened.value(), SHUT_RDWR);
  return opened;
}

int listen_again(int fd, int backlog) noexcept {
  return listen(fd, std::max(backlog, kBacklogLeast)) == 0 ? 0 : errno;
}

}  // namespace crane::setup
