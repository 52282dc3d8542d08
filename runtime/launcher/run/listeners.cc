// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace crane::launcher {
using setup::failure;
using setup::Status;

Listeners::~Listeners() {
  for (const auto& [place, socket] : sockets_) close(socket.fd);
}

Place Listeners::key_of(const Place& place) const {
  const auto published = setup::published_port(publish_, place.port).value();
  return published.address.empty() ? place : Place{place.port};
}

Outcome Listeners::open(const Request& request, int& fd, bool& fresh) {
  fresh = false;
  const Place key = key_of(request.place);
  auto found = sockets_.find(key);
  if (found == sockets_.end()) {
    const auto published = setup::published_port(publish_, key.port).value();
    const auto open = request.for_bind ? setup::hold_port : setup::listen_on;
    const std::string& address = key.address.empty() ? published.address : key.address;
    auto opened = open(address, published.ours, request.backlog, false);
    if (!opened) return refused(request, opened.error().detail, fd);
    unreached_.erase(request.place);
    found = sockets_.emplace(key, Socket{opened.value(), address, published.ours, false}).first;
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
  const auto published = setup::published_port(publish_, request.place.port).value();
  const std::string& address =
      published.address.empty() ? request.place.address : published.address;
  const std::string port = std::to_string(request.place.port);
  const bool lacks = error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
  return failure(
      Status::kPortTaken, "cannot listen on port",
      std::to_string(published.ours) + (place::is_wildcard(address) ? "" : " of " + address),
      strerror(error),
      lacks ? "give this machine the address, or publish the server's port at another one with "
              "--publish ADDRESS:" +
                  port + ":" + port
            : "stop its owner, publish the server's port elsewhere with --publish OTHER:" + port +
                  ", or publish only the ports that clients use, each with --publish");
}

bool Listeners::waits_for_own(const Place& place) const {
  const Place key = key_of(place);
  return std::any_of(sockets_.begin(), sockets_.end(), [&key](const auto& known) {
    return known.first != key && known.first.port == key.port &&
           place::overlap(known.first.address, key.address);
  });
}

void Listeners::adopt(const Place& place, int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (sockets_.count(place) != 0 ||
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
  // A place without an address is a port for which --publish named the address.
  sockets_[place] = {fd, place.address.empty() ? text : place.address, published, listens != 0};
}

}  // namespace crane::launcher
