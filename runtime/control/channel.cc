// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace crane::control {
namespace {
constexpr std::size_t kMessageMax = 64 * 1024;
}

Result<std::pair<int, int>> make_channel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("socketpair");
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);  // a stopped node must not block crane-run
  return std::pair{ends[0], ends[1]};
}

Result<ChannelMessage> receive_message(int channel) {
  ChannelMessage received;
  received.text.resize(kMessageMax);
  iovec part{received.text.data(), received.text.size()};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t got = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return Error{Code::kBusy, errno, "no message"};
  }
  if (got <= 0) return ChannelMessage{};  // EOF, ECONNRESET: gone
  received.text.resize(static_cast<std::size_t>(got));
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&received.fd, CMSG_DATA(c), sizeof received.fd);
    }
  }
  return received;
}

}  // namespace crane::control
