// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace crane::proxy {
namespace {

template <typename Get>
VirtualAddress address_of(int fd, Get&& get) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (get(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return virtual_address(reinterpret_cast<sockaddr*>(&address), size);
}

}  // namespace

int accept_client(int fd, VirtualAddress& peer) noexcept {
  int client = -1;
  peer = address_of(fd, [&client](int at, sockaddr* address, socklen_t* size) {
    client = ::accept4(at, address, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return client < 0 ? -1 : 0;
  });
  return client;
}

VirtualAddress peer_of(int fd) noexcept { return address_of(fd, ::getpeername); }
VirtualAddress local_of(int fd) noexcept { return address_of(fd, ::getsockname); }

Listener::~Listener() {
  accept_clients(false);
  if (fd_ >= 0) ::close(fd_);
}

void Listener::open(int fd, int backlog, event_base* base, event_callback_fn on_accept) {
  fd_ = fd;
  backlog_ = backlog;
  host_port_ = local_of(fd).port;
  // Inherited by what is accepted.
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  evutil_make_socket_nonblocking(fd);
  event_assign(&accept_event_, base, fd, EV_READ | EV_PERSIST, on_accept, this);
}

void Listener::accept_clients(bool on) {
  if (fd_ < 0 || on == accepting_) return;
  accepting_ = on;
  if (on) {
    event_add(&accept_event_, nullptr);
    if (has_unclaimed()) event_active(&accept_event_, EV_READ, 0);
  } else {
    event_del(&accept_event_);
  }
}

bool Listener::listens() const noexcept {
  int listens = 0;
  socklen_t size = sizeof listens;
  return fd_ >= 0 && ::getsockopt(fd_, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
         listens != 0;
}

// A listening socket that is shut down is closed for all processes, and can listen again.  One that
// does not listen would keep the mark, and hand it on to its clients: a FIN at once.
void Listener::close_for_all() noexcept {
  if (listens()) ::shutdown(fd_, SHUT_RDWR);
}

bool Listener::open_again() noexcept { return fd_ < 0 || ::listen(fd_, backlog_) == 0; }

bool Listener::has_room(const BacklogSpace& room) {
  while (!unadmitted_.empty() && unadmitted_.front() <= room.applied) unadmitted_.pop_front();
  return unproposed_ + unadmitted_.size() < room.connections;
}

void Listener::proposed(std::uint64_t place) {
  --unproposed_;
  unadmitted_.push_back(place);
}

ClientSocket Listener::next_unclaimed() {
  ClientSocket first = std::move(unclaimed_.front());
  unclaimed_.pop_front();
  return first;
}

void Listener::stop() noexcept {
  unproposed_ = 0;
  unadmitted_.clear();
  full = false;
}

}  // namespace crane::proxy
