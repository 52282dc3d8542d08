// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "proxy/clients/host_sockets.h"

namespace crane::proxy {

Listener::Listener(Proxy& owner, Place server_place, int fd, int backlog, event_base* base,
                   event_callback_fn on_accept)
    : proxy(&owner),
      port(server_place.port),
      address(std::move(server_place.address)),
      fd_(fd),
      backlog_(backlog),
      host_port_(local_of(fd).port) {
  set_stream_options(fd);
  evutil_make_socket_nonblocking(fd);
  event_assign(&accept_event_, base, fd, EV_READ | EV_PERSIST, on_accept, this);
}

Listener::~Listener() {
  accept_clients(false, false);
  ::close(fd_);
}

void Listener::accept_clients(bool on, bool at_once) {
  if (on != std::exchange(accepting_, on)) {
    on ? event_add(&accept_event_, nullptr) : event_del(&accept_event_);
  }
  if (on && at_once) event_active(&accept_event_, EV_READ, 0);
}

bool Listener::listens() const noexcept {
  int listens = 0;
  socklen_t size = sizeof listens;
  return ::getsockopt(fd_, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

// shutdown() closes a listening socket for all processes, and it can listen again.  A socket that
// does not listen would keep the shutdown mark, and pass it to its clients: a FIN at once.
void Listener::close_for_all() noexcept {
  if (listens()) ::shutdown(fd_, SHUT_RDWR);
}

bool Listener::open_again() noexcept { return ::listen(fd_, backlog_) == 0; }

}  // namespace crane::proxy
