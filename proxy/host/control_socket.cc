// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/control_socket.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace crane::node {
namespace {

constexpr std::size_t kConnectionsMax = 32;
constexpr std::size_t kRequestMax = 4096;
constexpr timeval kRequestTimeout{2, 0};
constexpr int kBacklog = 16;

}  // namespace

ControlSocket::ControlSocket(event_base* base, Owner& owner)
    : base_(base), owner_(owner), pause_(base, "requests", *this) {}

void ControlSocket::accept_pause_changed() {
  owner_.woke();
  if (fd_ >= 0) pause_.on() ? event_del(&event_) : event_add(&event_, nullptr);
}

Outcome ControlSocket::open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error{Code::kSystem, ENAMETOOLONG, "its path"};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ::unlink(path.c_str());
  fd_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd_, kBacklog) != 0) {
    return system_error("bind and listen");
  }
  event_assign(
      &event_, base_, fd_, EV_READ | EV_PERSIST,
      [](int, short, void* self) { static_cast<ControlSocket*>(self)->accept(); }, this);
  event_add(&event_, nullptr);
  return Done{};
}

void ControlSocket::close() {
  for (const auto& connection : connections_) {
    event_del(&connection->event_);
    ::close(connection->fd);
  }
  connections_.clear();
  if (event_initialized(&event_)) event_del(&event_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void ControlSocket::accept() {
  owner_.woke();
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    (void)pause_.failed(errno, "the control socket");
    return;
  }
  pause_.accepted();
  if (connections_.size() >= kConnectionsMax) {
    ::close(fd);
    return;
  }
  connections_.push_back(std::make_unique<Connection>());
  Connection& connection = *connections_.back();
  connection.owner = this;
  connection.fd = fd;
  event_assign(
      &connection.event_, base_, fd, EV_READ,
      [](int, short, void* argument) {
        auto* that = static_cast<Connection*>(argument);
        that->owner->serve(*that);
      },
      &connection);
  event_add(&connection.event_, &kRequestTimeout);
}

// Runs when the request has arrived or its timeout has expired.
void ControlSocket::serve(const Connection& connection) {
  owner_.woke();
  const int fd = connection.fd;
  std::erase_if(connections_, [&](const auto& c) { return c.get() == &connection; });
  std::string request(kRequestMax + 1, '\0');  // a longer request is refused, not cut
  const ssize_t got = ::recv(fd, request.data(), request.size(), MSG_DONTWAIT);
  if (got > 0) {
    request.resize(static_cast<std::size_t>(got));
    if (owner_.take_over(fd, request)) return;  // CTL-3
    const std::string text = owner_.answer(request);
    if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      spdlog::warn("a request was not answered: its sender has left ({})", std::strerror(errno));
    }
  }
  ::close(fd);
}

}  // namespace crane::node
