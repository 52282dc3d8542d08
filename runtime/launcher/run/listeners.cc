// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace crane::launcher {
using setup::failure;
using setup::Status;

Listeners::~Listeners() {
  for (const auto& [port, socket] : sockets_) close(socket.fd);
}

Outcome Listeners::open(std::uint16_t port, const std::string& address, int backlog, int& fd,
                        bool& fresh) {
  fresh = false;
  if (const auto found = sockets_.find(port); found != sockets_.end()) {
    fd = found->second.fd;
    return Done{};
  }
  const std::uint16_t published = setup::published_port(publish_, port).value();
  auto opened = setup::listen_on(address, published, backlog);
  if (!opened) {
    fd = -opened.error().detail;
    return failure(Status::kPortTaken, "cannot listen on port", std::to_string(published),
                   strerror(opened.error().detail),
                   "stop its owner, publish the server's port elsewhere with --publish OTHER:" +
                       std::to_string(port) +
                       ", or publish only the ports that clients use, each with --publish");
  }
  fd = opened.value();
  unreached_.erase(port);
  sockets_[port] = {fd, address, published};
  fresh = true;
  return Done{};
}

void Listeners::adopt(std::uint16_t port, int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (sockets_.count(port) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(fd);
    return;
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  const bool is_v6 = address.ss_family == AF_INET6;
  const void* where = is_v6 ? static_cast<const void*>(&v6->sin6_addr) : &v4->sin_addr;
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.ss_family, where, text, sizeof text);
  sockets_[port] = {fd, text, ntohs(is_v6 ? v6->sin6_port : v4->sin_port)};
}

}  // namespace crane::launcher
