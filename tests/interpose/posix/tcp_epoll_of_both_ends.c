// SPDX-License-Identifier: Apache-2.0
// One epoll with a listener and both ends of its connections, edge-triggered: an echo of many
// small messages in one thread.
#include <sys/epoll.h>

#include "tcp_loopback.h"

enum { kPairs = 20, kRounds = 50 };

static void set_nonblocking(int fd) {
  CHECK_EQUAL(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void watch(int epoll, int fd, uint32_t events, uint64_t data) {
  struct epoll_event e = {.events = events, .data.u64 = data};
  CHECK_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e), 0);
}

int main(void) {
  int port = 0, done = 0, accepted = 0;
  int rounds[1024] = {0};
  const int listener = listen_at_loopback(kPairs, &port);
  const int epoll = epoll_create1(0);
  enum { kClient = 1, kServed = 2, kListener = 3 };
  watch(epoll, listener, EPOLLIN, kListener);
  for (int i = 0; i < kPairs; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(fd < 1024);
    CHECK(try_connect(fd, port) == 0 || errno == EINPROGRESS);
    watch(epoll, fd, EPOLLIN | EPOLLOUT | EPOLLET, ((uint64_t)fd << 8) | kClient);
  }
  while (done < kPairs) {
    struct epoll_event events[16];
    const int n = epoll_wait(epoll, events, 16, 5000);
    CHECK(n > 0);
    for (int i = 0; i < n; ++i) {
      const int what = (int)(events[i].data.u64 & 0xff), fd = (int)(events[i].data.u64 >> 8);
      char byte = 0;
      if (what == kListener) {
        const int served = accept(listener, NULL, NULL);
        CHECK(served >= 0);
        ++accepted;
        set_nonblocking(served);
        watch(epoll, served, EPOLLIN | EPOLLET, ((uint64_t)served << 8) | kServed);
      } else if (what == kServed) {
        while (recv(fd, &byte, 1, 0) == 1) CHECK_EQUAL(send(fd, &byte, 1, 0), 1);
      } else if (rounds[fd] == 0) {
        if ((events[i].events & EPOLLOUT) == 0) continue;
        rounds[fd] = 1;
        CHECK_EQUAL(send(fd, "a", 1, 0), 1);
      } else {
        while (rounds[fd] <= kRounds && recv(fd, &byte, 1, 0) == 1) {
          if (++rounds[fd] <= kRounds) CHECK_EQUAL(send(fd, &byte, 1, 0), 1);
          if (rounds[fd] == kRounds + 1) ++done;
        }
      }
    }
  }
  CHECK_EQUAL(accepted, kPairs);
  return succeed();
}
