// SPDX-License-Identifier: Apache-2.0
#pragma once
// The result of the TCP handshake, read from a socket on which nothing was sent or received yet.

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "proxy/clients/moved_socket.h"

namespace crane::proxy {

inline std::uint32_t repaired(int fd, int option) {
  std::uint32_t value = 0;
  socklen_t size = sizeof value;
  ::getsockopt(fd, IPPROTO_TCP, option, &value, &size);
  return value;
}

inline void repair(int fd, int option, int value) {
  ::setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

inline Handshake handshake_of(int fd) {
  Handshake shake;
  repair(fd, TCP_REPAIR, TCP_REPAIR_ON);
  repair(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
  shake.sent = repaired(fd, TCP_QUEUE_SEQ);
  repair(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
  shake.received = repaired(fd, TCP_QUEUE_SEQ);
  repair(fd, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP);
  return shake;
}

}  // namespace crane::proxy
