// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace crane::launcher {
namespace {

constexpr int kBacklogLeast = 511;  // the group takes what waits during a leader change

// A listening socket bound to address:port, or -1 with errno.
int listen_on(const std::string& address, std::uint16_t port, int backlog) {
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
  if (fd < 0) return -1;
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd, reinterpret_cast<sockaddr*>(&where), size) == 0 && listen(fd, backlog) == 0) {
    return fd;
  }
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

}  // namespace

Listeners::~Listeners() {
  for (const auto& [port, socket] : sockets_) close(socket.fd);
}

Problem Listeners::open(std::uint16_t port, const std::string& address, int backlog, int& fd,
                        bool& fresh) {
  fresh = false;
  if (const auto found = sockets_.find(port); found != sockets_.end()) {
    fd = found->second.fd;
    return {};
  }
  std::uint16_t published = port;
  for (const auto& [ours, theirs] : publish_) {
    if (theirs == port) published = ours;
  }
  fd = listen_on(address, published, std::max(backlog, kBacklogLeast));
  if (fd < 0 && errno == EAFNOSUPPORT) {
    fd = listen_on("0.0.0.0", published, std::max(backlog, kBacklogLeast));
  }
  if (fd < 0) {
    return problem(Status::kPortTaken, "cannot listen on port", std::to_string(published),
                   strerror(errno),
                   "stop its owner, or publish the server's port elsewhere with --publish OTHER:" +
                       std::to_string(port));
  }
  sockets_[port] = {fd, address, published};
  fresh = true;
  return {};
}

}  // namespace crane::launcher
