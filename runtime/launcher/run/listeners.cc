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

Outcome Listeners::open(const Request& request, int& fd, bool& fresh) {
  fresh = false;
  auto found = sockets_.find(request.port);
  if (found == sockets_.end()) {
    const std::uint16_t published = setup::published_port(publish_, request.port).value();
    const auto open = request.for_bind ? setup::hold_port : setup::listen_on;
    auto opened = open(request.address, published, request.backlog);
    if (!opened) return refused(request, opened.error().detail, fd);
    unreached_.erase(request.port);
    const Socket socket{opened.value(), request.address, published, false};
    found = sockets_.emplace(request.port, socket).first;
  }
  Socket& socket = found->second;
  fd = socket.fd;
  if (request.for_bind || socket.serves) return Done{};
  if (const int error = setup::listen_again(fd, request.backlog); error != 0) {
    return refused(request, error, fd);
  }
  socket.serves = fresh = true;
  return Done{};
}

Outcome Listeners::refused(const Request& request, int error, int& fd) const {
  fd = -error;
  const std::uint16_t published = setup::published_port(publish_, request.port).value();
  return failure(Status::kPortTaken, "cannot listen on port", std::to_string(published),
                 strerror(error),
                 "stop its owner, publish the server's port elsewhere with --publish OTHER:" +
                     std::to_string(request.port) +
                     ", or publish only the ports that clients use, each with --publish");
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
  int listens = 0;
  socklen_t length = sizeof listens;
  (void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
  const std::uint16_t published = ntohs(is_v6 ? v6->sin6_port : v4->sin_port);
  sockets_[port] = {fd, text, published, listens != 0};
}

}  // namespace crane::launcher
