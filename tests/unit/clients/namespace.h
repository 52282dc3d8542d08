// SPDX-License-Identifier: Apache-2.0
#pragma once
// A network namespace for one test, with loopback.

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <cstring>
#include <functional>
#include <thread>

#include "proxy/clients/moved_socket.h"
#include "tests/unit/clients/loopback_listener.h"

namespace crane::proxy {

// Runs `body` in a thread whose sockets are in a new namespace. Returns false if this process is
// not permitted to make one.
inline bool in_namespace(const std::function<void()>& body) {
  bool made = false;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
    ifreq up{};
    std::strcpy(up.ifr_name, "lo");
    up.ifr_flags = IFF_UP | IFF_RUNNING;
    made = ::ioctl(fd, SIOCSIFFLAGS, &up) == 0;
    ::close(fd);
    if (made) body();
  }).join();
  return made;
}

inline VirtualAddress of_loopback(std::uint16_t port) {
  VirtualAddress a{};
  a.family = AF_INET;
  a.port = port;
  a.ip[0] = 127;
  a.ip[3] = 1;
  return a;
}

}  // namespace crane::proxy
