// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/check_ins.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

namespace crane::node {
namespace {

// On a crowded machine a process may wait this long for a processor.
constexpr timeval kCheckInTimeout{60, 0};
// Connections accepted in one pass, so that the loop's other work is not delayed.
constexpr int kTakenAtOnce = 64;

}  // namespace

CheckIns::Connection::~Connection() {
  if (event_initialized(&event_)) event_del(&event_);
  ::close(fd);
}

CheckIns::CheckIns(event_base* base, int listener, Owner& owner)
    : base_(base), owner_(owner), pause_(base, "processes of the server", *this) {
  event_assign(&listener_event_, base_, listener, EV_READ | EV_PERSIST, on_connection, this);
  event_add(&listener_event_, nullptr);
}

void CheckIns::accept_pause_changed() {
  pause_.on() ? event_del(&listener_event_) : event_add(&listener_event_, nullptr);
}

CheckIns::~CheckIns() { event_del(&listener_event_); }

void CheckIns::forget() { pending_.clear(); }

void CheckIns::on_connection(int, short, void* argument) {
  static_cast<CheckIns*>(argument)->take_connections();
}

void CheckIns::take_connections() {
  for (int taken = 0; taken < kTakenAtOnce; ++taken) {
    const int connection =
        ::accept4(event_get_fd(&listener_event_), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
      (void)pause_.failed(errno, "the socket of the server's processes");
      return;
    }
    pause_.accepted();
    read_pending();  // the same process may have sent on an earlier connection
    if (read(connection)) {
      ::close(connection);
    } else {
      wait_for(connection);
    }
  }
}

void CheckIns::take_waiting() {
  read_pending();
  take_connections();
}

void CheckIns::read_pending() {
  for (auto at = pending_.begin(); at != pending_.end();) {
    at = read((*at)->fd) ? pending_.erase(at) : std::next(at);
  }
}

void CheckIns::wait_for(int fd) {
  if (pending_.size() >= kSilentMax) {
    spdlog::warn("{} processes have connected without checking in: the oldest is disconnected",
                 pending_.size());
    pending_.pop_front();
  }
  Connection& waits = *pending_.emplace_back(std::make_unique<Connection>(this, fd));
  event_assign(&waits.event_, base_, fd, EV_READ | EV_PERSIST, on_message, &waits);
  if (event_add(&waits.event_, &kCheckInTimeout) != 0) {
    spdlog::warn("cannot wait for a process that has connected");
    pending_.pop_back();
  }
}

void CheckIns::on_message(int, short what, void* argument) {
  auto* const waits = static_cast<Connection*>(argument);
  CheckIns& all = *waits->owner;
  all.read_pending();  // may delete `waits`
  if ((what & EV_TIMEOUT) == 0) return;
  if (all.pending_.remove_if([waits](const auto& c) { return c.get() == waits; }) == 0) return;
  spdlog::warn("a process connected and did not check in for {} s", kCheckInTimeout.tv_sec);
}

bool CheckIns::read(int fd) {
  dmt::CheckIn in{};
  const ssize_t got = ::recv(fd, &in, sizeof in, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (got == 0) {
    spdlog::warn("a process ended before it checked in");
  } else if (got > 0 && got != sizeof in) {
    spdlog::warn("a check-in is too short: {} bytes", got);
  } else if (got < 0 || ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    spdlog::warn("a check-in could not be read: {}", std::strerror(errno));
  } else {
    owner_.checked_in(in, credentials.pid);
  }
  return true;
}

}  // namespace crane::node
