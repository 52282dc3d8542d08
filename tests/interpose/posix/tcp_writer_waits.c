// SPDX-License-Identifier: Apache-2.0
// A nonblocking writer fills the connection until EAGAIN, poll reports that, and reading makes it
// writable again; a blocked writer then continues, or ends with its time-out.
#include "tcp_loopback.h"

static int ends[2];
static char buffer[65536];

static void* drain(void* unused) {
  (void)unused;
  long total = 0;
  for (ssize_t n; (n = recv(ends[1], buffer, sizeof buffer, 0)) > 0;) total += n;
  return (void*)total;
}

int main(void) {
  connected_pair(ends);
  static char zeros[65536];
  long sent = 0;
  for (ssize_t n; (n = send(ends[0], zeros, sizeof zeros, MSG_DONTWAIT)) > 0;) sent += n;
  CHECK_EQUAL(errno, EAGAIN);
  CHECK(sent >= 65536);
  CHECK_EQUAL(level_of(ends[0], POLLOUT), 0);
  const struct timeval soon = {0, 20000};
  CHECK_EQUAL(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
  CHECK_EQUAL(send(ends[0], zeros, 1, 0), -1);
  CHECK_EQUAL(errno, EAGAIN);
  const struct timeval never = {0, 0};
  CHECK_EQUAL(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &never, sizeof never), 0);
  const pthread_t reader = start(drain, NULL);
  await_level(ends[0], POLLOUT);
  for (int i = 0; i < 100; ++i) {
    CHECK_EQUAL(send(ends[0], zeros, sizeof zeros, 0), sizeof zeros);
    sent += sizeof zeros;
  }
  CHECK_EQUAL(shutdown(ends[0], SHUT_WR), 0);
  CHECK_EQUAL((long)join(reader), sent);
  return succeed();
}
