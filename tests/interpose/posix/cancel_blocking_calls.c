// SPDX-License-Identifier: Apache-2.0
// Blocking calls are cancellation points: read, poll, select, accept, sem_wait, sigwait, sleep,
// wait, on pipes and sockets alike.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../small.h"

static int fds[2], pair[2];
static sem_t semaphore, begun;

static void* block(void* x) {
  char c;
  const sigset_t set = set_of_signal(SIGUSR1);
  int signo;
  struct pollfd p = {fds[0], POLLIN, 0};
  fd_set r;
  FD_ZERO(&r);
  FD_SET(fds[0], &r);
  sem_post(&begun);
  switch ((long)x) {
    case 0:
      (void)!read(fds[0], &c, 1);
      break;
    case 1:
      poll(&p, 1, -1);
      break;
    case 2:
      select(fds[0] + 1, &r, NULL, NULL, NULL);
      break;
    case 3:
      recv(pair[0], &c, 1, 0);
      break;
    case 4:
      sem_wait(&semaphore);
      break;
    case 5:
      sigwait(&set, &signo);
      break;
    case 6:
      sleep(1000);
      break;
    case 7:
      pause();
      break;
    default:
      wait(NULL);
      break;
  }
  CHECK(0);
  return x;
}

int main(void) {
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  sem_init(&semaphore, 0, 0);
  sem_init(&begun, 0, 0);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  for (long i = 0; i < 9; ++i) {
    const pthread_t t = start(block, (void*)i);
    sem_wait(&begun);
    if (i % 2 == 0) sleep_ms(2);
    CHECK_EQUAL(pthread_cancel(t), 0);
    CHECK(join(t) == PTHREAD_CANCELED);
  }
  kill(child, SIGKILL);
  CHECK_EQUAL(wait(NULL), child);
  return succeed();
}
