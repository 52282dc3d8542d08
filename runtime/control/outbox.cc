// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/outbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace crane::control {

void Outbox::start(int fd) noexcept {
  for (const Message& message : waiting_) {
    if (message.passed >= 0) ::close(message.passed);
  }
  waiting_.clear();
  refused_ = false;
  fd_ = fd;
}

bool Outbox::has_room() const noexcept {
  pollfd socket{fd_, POLLOUT, 0};
  return ::poll(&socket, 1, 0) > 0;
}

Outbox::Sent Outbox::put(const std::string& text, int passed) noexcept {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed >= 0) {
    message.msg_control = ancillary;
    message.msg_controllen = sizeof ancillary;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof passed);
    std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Sent::kSent;
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return Sent::kGone;
  const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM;
  return later ? Sent::kWaits : Sent::kFailed;
}

Outbox::Sent Outbox::send(Kind kind, const std::string& key, std::string text, int passed) {
  if (fd_ < 0) return Sent::kGone;
  if (kind == Kind::kLast || (waiting_.empty() && has_room())) {
    const Sent sent = put(text, passed);
    if (sent != Sent::kWaits) return sent;
    refused_ = has_room();
  }
  return keep(kind, key, std::move(text), passed);
}

Outbox::Sent Outbox::keep(Kind kind, const std::string& key, std::string text, int passed) {
  const int copy = passed < 0 ? -1 : ::fcntl(passed, F_DUPFD_CLOEXEC, 0);
  if (passed >= 0 && copy < 0) return Sent::kFailed;
  const auto same = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&key](const Message& other) { return other.key == key; });
  if (same != waiting_.end()) {
    if (same->passed >= 0) ::close(same->passed);
    waiting_.erase(same);
  }
  waiting_.push_back({kind, key, std::move(text), copy});
  return Sent::kWaits;
}

Outbox::Sent Outbox::flush() {
  refused_ = false;
  while (!waiting_.empty()) {
    const Message& next = waiting_.front();
    if (next.kind == Kind::kUsual && !has_room()) return Sent::kWaits;
    const Sent sent = put(next.text, next.passed);
    if (sent == Sent::kWaits) {
      refused_ = has_room();
      return sent;
    }
    if (sent == Sent::kGone) {
      start(-1);
      return sent;
    }
    if (next.passed >= 0) ::close(next.passed);
    waiting_.pop_front();
    if (sent == Sent::kFailed) return sent;
  }
  return Sent::kSent;
}

}  // namespace crane::control
