// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/listeners.h"

#include <unistd.h>

#include <cstring>

namespace crane::launcher {
using setup::problem;
using setup::Status;

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
  auto opened = setup::listen_on(address, published, backlog);
  if (!opened) {
    return problem(Status::kPortTaken, "cannot listen on port", std::to_string(published),
                   strerror(opened.error().detail),
                   "stop its owner, or publish the server's port elsewhere with --publish OTHER:" +
                       std::to_string(port));
  }
  fd = opened.value();
  sockets_[port] = {fd, address, published};
  fresh = true;
  return {};
}

}  // namespace crane::launcher
