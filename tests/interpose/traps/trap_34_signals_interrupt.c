// SPDX-License-Identifier: Apache-2.0
// A handled signal interrupts blocking calls: EINTR without SA_RESTART, with it the call continues.
#include "../small.h"

static pthread_t main_thread;
static int pipe_fds[2], handled;

static void note(int signo) {
  (void)signo;
  ++handled;
}
static void* disturb(void* x) {
  sleep_ms(5);
  pthread_kill(main_thread, SIGUSR1);
  if (x != NULL) {
    sleep_ms(5);
    CHECK_EQUAL(write(pipe_fds[1], "x", 1), 1);
  }
  return x;
}

int main(void) {
  char c;
  sem_t semaphore;
  main_thread = pthread_self();
  CHECK_EQUAL(pipe(pipe_fds), 0);
  sem_init(&semaphore, 0, 0);

  handle(SIGUSR1, note, 0);
  pthread_t t = start(disturb, NULL);
  CHECK_EQUAL(read(pipe_fds[0], &c, 1), -1);
  CHECK_EQUAL(errno, EINTR);
  join(t);
  t = start(disturb, NULL);
  CHECK_EQUAL(sem_wait(&semaphore), -1);
  CHECK_EQUAL(errno, EINTR);
  join(t);
  t = start(disturb, NULL);
  struct timespec left = {0, 0};
  const struct timespec long_time = {50, 0};
  CHECK_EQUAL(nanosleep(&long_time, &left), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK(left.tv_sec >= 40);
  join(t);

  handle(SIGUSR1, note, SA_RESTART);
  t = start(disturb, &c);
  CHECK_EQUAL(read(pipe_fds[0], &c, 1), 1);
  join(t);
  CHECK_EQUAL(handled, 4);
  return succeed();
}
