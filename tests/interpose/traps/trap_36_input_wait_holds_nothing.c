// SPDX-License-Identifier: Apache-2.0
// A thread that waits for input on a socket delays no other: the others lock, sleep and finish.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

static int fds[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void* await_input(void* x) {
  char c;
  CHECK_EQUAL(recv(fds[0], &c, 1, 0), 1);
  return x;
}
static void* work(void* x) {
  for (int i = 0; i < 50; ++i) {
    pthread_mutex_lock(&mutex);
    ++count;
    pthread_mutex_unlock(&mutex);
    if (i % 10 == 0) usleep(200);
  }
  return x;
}

int main(void) {
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const pthread_t reader = start(await_input, NULL), a = start(work, NULL), b = start(work, NULL);
  join(a);
  join(b);
  CHECK_EQUAL(count, 100);
  CHECK_EQUAL(send(fds[1], "x", 1, 0), 1);
  join(reader);
  return succeed();
}
