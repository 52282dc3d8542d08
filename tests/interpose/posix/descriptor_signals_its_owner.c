// SPDX-License-Identifier: Apache-2.0
// O_ASYNC and FIOASYNC: input at a socket or pipe is signalled to its owner by SIGIO, or by the
// signal of F_SETSIG with the descriptor; without the flag or an owner there is no signal.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../small.h"

static sigset_t both;

static void expect_nothing(void) {
  const struct timespec none = {0, 0};
  CHECK_EQUAL(sigtimedwait(&both, NULL, &none), -1);
  CHECK_EQUAL(errno, EAGAIN);
}

// One event may be signalled more than once: drops the rest.
static void drop_rest(void) {
  const struct timespec none = {0, 0};
  while (sigtimedwait(&both, NULL, &none) > 0) {
  }
}

static void empty(int reader) {
  char b[16];
  CHECK_EQUAL(read(reader, b, sizeof b), 1);
  drop_rest();
}

static void tells(int reader, int writer) {
  siginfo_t info;
  CHECK_EQUAL(fcntl(reader, F_GETFL) & O_ASYNC, 0);
  CHECK_EQUAL(fcntl(reader, F_SETFL, fcntl(reader, F_GETFL) | O_ASYNC), 0);
  CHECK_EQUAL(fcntl(reader, F_GETFL) & O_ASYNC, O_ASYNC);
  CHECK_EQUAL(write(writer, "x", 1), 1);  // it has no owner yet
  expect_nothing();
  empty(reader);
  CHECK_EQUAL(fcntl(reader, F_SETOWN, getpid()), 0);
  CHECK_EQUAL(write(writer, "x", 1), 1);
  CHECK_EQUAL(sigwaitinfo(&both, &info), SIGIO);
  empty(reader);
  CHECK_EQUAL(fcntl(reader, F_SETSIG, SIGUSR2), 0);
  CHECK_EQUAL(write(writer, "x", 1), 1);
  CHECK_EQUAL(sigwaitinfo(&both, &info), SIGUSR2);
  CHECK_EQUAL(info.si_code, POLL_IN);
  CHECK_EQUAL(info.si_fd, reader);
  CHECK((info.si_band & POLLIN) != 0);
  empty(reader);
  CHECK_EQUAL(fcntl(reader, F_SETSIG, 0), 0);
  int on = 0;
  CHECK_EQUAL(ioctl(reader, FIOASYNC, &on), 0);
  CHECK_EQUAL(fcntl(reader, F_GETFL) & O_ASYNC, 0);
  CHECK_EQUAL(write(writer, "x", 1), 1);
  expect_nothing();
  empty(reader);
  on = 1;
  CHECK_EQUAL(ioctl(reader, FIOASYNC, &on), 0);
  CHECK_EQUAL(fcntl(reader, F_SETOWN, -getpgrp()), 0);
  CHECK_EQUAL(write(writer, "x", 1), 1);
  CHECK_EQUAL(sigwaitinfo(&both, &info), SIGIO);
  empty(reader);
}

static void loopback(int* ends) {
  struct sockaddr_in a = {.sin_family = AF_INET};
  socklen_t n = sizeof a;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int l = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(l, (void*)&a, n), 0);
  CHECK_EQUAL(listen(l, 1), 0);
  CHECK_EQUAL(getsockname(l, (void*)&a, &n), 0);
  ends[1] = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(ends[1], (void*)&a, n), 0);
  ends[0] = accept(l, NULL, NULL);
  CHECK(ends[0] >= 0);
}

int main(void) {
  int ends[2];
  setpgid(0, 0);  // also if the group is one from outside
  both = set_of_signal(SIGIO);
  sigaddset(&both, SIGUSR2);
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, &both, NULL), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  tells(ends[0], ends[1]);
  CHECK_EQUAL(pipe(ends), 0);
  tells(ends[0], ends[1]);
  loopback(ends);
  tells(ends[0], ends[1]);
  int on = 1;
  const int counter = eventfd(0, 0);
  CHECK_EQUAL(ioctl(counter, FIOASYNC, &on), -1);
  CHECK_EQUAL(errno, ENOTTY);
  CHECK_EQUAL(fcntl(ends[0], F_SETOWN, 0x3fffffff), -1);
  CHECK_EQUAL(errno, ESRCH);
  return succeed();
}
