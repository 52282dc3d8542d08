// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "dmt/base/place.h"

namespace crane::setup {
namespace {

constexpr int kBacklogLeast = 511;  // for the clients that wait during a leader change

struct SocketName {
  sockaddr_storage bytes{};
  socklen_t size = 0;  // 0: the text is not an address
};

SocketName name_of(std::string_view address, std::uint16_t port) {
  SocketName name;
  const std::string text(address == place::kBoth ? place::kIpv6 : address);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&name.bytes);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&name.bytes);
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    name.size = sizeof *v6;
  } else if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    name.size = sizeof *v4;
  }
  return name;
}

// Restricts the socket to IPv6 or to `lo` if `address` requires that.  Returns false and sets errno
// on failure.
bool restrict_to(int fd, const std::string& address) {
  const int only_ipv6 = place::without_device(address) == place::kBoth ? 0 : 1;
  if (place::is_ipv6(address) || only_ipv6 == 0) {
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof only_ipv6) != 0) return false;
  }
  return !address.ends_with(place::kLoopback) ||
         setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof "lo") == 0;
}

Result<int> open_one(const std::string& address, std::uint16_t port, int backlog, bool absent) {
  const SocketName name = name_of(place::without_device(address), port);
  if (name.size == 0) return Error{Code::kBadArgument, EINVAL, "read the address"};
  const int fd = socket(name.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return system_error("make a socket");
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (absent) setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &yes, sizeof yes);
  const auto* where = reinterpret_cast<const sockaddr*>(&name.bytes);
  if (restrict_to(fd, address) && bind(fd, where, name.size) == 0 &&
      listen_again(fd, backlog) == 0) {
    return fd;
  }
  const Error why = system_error("listen");
  close(fd);
  return why;
}

}  // namespace

Result<int> listen_on(const std::string& address, std::uint16_t port, int backlog, bool absent) {
  auto opened = open_one(address, port, backlog, absent);
  if (!opened && opened.error().detail == EAFNOSUPPORT && address == place::kBoth)
    opened = open_one(std::string(place::kIpv4), port, backlog, absent);
  return opened;
}

// Calls listen() and then shutdown(), because only listen() fails if another socket listens there.
Result<int> hold_port(const std::string& address, std::uint16_t port, int backlog, bool absent) {
  auto opened = listen_on(address, port, backlog, absent);
  if (opened) shutdown(opened.value(), SHUT_RDWR);
  return opened;
}

bool has_address(const std::string& address) noexcept {
  const SocketName name = name_of(place::without_device(address), 0);
  const int fd = socket(name.bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool has = bind(fd, reinterpret_cast<const sockaddr*>(&name.bytes), name.size) == 0;
  close(fd);
  return has;
}

int listen_again(int fd, int backlog) noexcept {
  return listen(fd, std::max(backlog, kBacklogLeast)) == 0 ? 0 : errno;
}

}  // namespace crane::setup
