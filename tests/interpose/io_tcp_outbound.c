// SPDX-License-Identifier: Apache-2.0
// solo: --clients tests/interpose/io_tcp_outbound.script
// native: no
// A server connects to others: the outcome is what was admitted. The others are in the script.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "outbound.h"

static struct sockaddr_in other(void) {
  struct sockaddr_in a;
  memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_port = htons(8000);
  inet_pton(AF_INET, "198.51.100.7", &a.sin_addr);
  return a;
}

static const char* try_connect(int fd) {
  const struct sockaddr_in a = other();
  errno = 0;
  return connect(fd, (const struct sockaddr*)&a, sizeof a) == 0 ? "connected"
                                                                : strerrorname_np(errno);
}

static int state_of(int fd) {
  struct tcp_info info;
  socklen_t n = sizeof info;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n);
  return info.tcpi_state;
}

static void show_names(int fd) {
  struct sockaddr_in a;
  socklen_t n = sizeof a;
  char text[64];
  memset(&a, 0, sizeof a);
  printf("  local %s", outcome(getsockname(fd, (struct sockaddr*)&a, &n)));
  printf(" %s:%d", inet_ntop(AF_INET, &a.sin_addr, text, sizeof text), ntohs(a.sin_port));
  memset(&a, 0, sizeof a);
  printf(", peer %s", outcome(getpeername(fd, (struct sockaddr*)&a, &n)));
  printf(" %s:%d\n", inet_ntop(AF_INET, &a.sin_addr, text, sizeof text), ntohs(a.sin_port));
}

static void blocking(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  printf("blocking: %s\n", try_connect(fd));
  show_names(fd);
  printf("  again: %s, state %d\n", try_connect(fd), state_of(fd));
  send_and_expect(fd);
  close(fd);
}

static void nonblocking(void) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int set = epoll_create1(0);
  printf("nonblocking: %s\n", try_connect(fd));
  printf("  again: %s, state %d\n", try_connect(fd), state_of(fd));
  show_names(fd);
  wait_for_outcome(set, fd);
  printf("  then %s", try_connect(fd));
  printf(", %s, state %d\n", try_connect(fd), state_of(fd));
  show_names(fd);
  expect_ready("input", set, fd);
  expect_ready("reset", set, fd);
  show_names(fd);
  close(set);
  close(fd);
}

static void given_up(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  printf("closed: %s\n", try_connect(fd));
  close(fd);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  printf("shut down: %s\n", try_connect(fd));
  printf("  shutdown %s", outcome(shutdown(fd, SHUT_RDWR)));
  printf(", poll %x", (unsigned)ready(fd, 0));
  printf(", error %d\n", error_of(fd));
  close(fd);
}

static void timed_out(void) {
  const struct timeval t = {0, 1000};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
  printf("time-out: %s", try_connect(fd));
  printf(", then %s\n", try_connect(fd));
  close(fd);
}

static void refused(void) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  printf("refused: %s\n", try_connect(fd));
  printf("  send %s", outcome(send(fd, "x", 1, 0)));
  printf(", once more: %s\n", try_connect(fd));
  close(fd);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  printf("refused later: %s\n", try_connect(fd));
  printf("  poll %x", (unsigned)ready(fd, -1));
  printf(", error %d", error_of(fd));
  printf(" %d", error_of(fd));
  printf(", poll %x\n", (unsigned)ready(fd, 0));
  close(fd);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  blocking();
  nonblocking();
  given_up();
  timed_out();
  refused();
  return 0;
}
