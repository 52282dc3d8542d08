// SPDX-License-Identifier: Apache-2.0
// A finished request notifies by a signal with its value, or by a function in a thread.
#define _GNU_SOURCE
#include <aio.h>

#include "../small.h"

static sem_t done;
static volatile int got;
static void on_notice(union sigval v) {
  got = v.sival_int;
  CHECK_EQUAL(sem_post(&done), 0);
}

int main(void) {
  char path[] = "/tmp/aioXXXXXX", b[4];
  const int fd = mkstemp(path);
  CHECK_EQUAL(unlink(path), 0);
  CHECK_EQUAL(sem_init(&done, 0, 0), 0);
  block_signal(SIGRTMIN);
  struct aiocb c = {.aio_fildes = fd, .aio_buf = b, .aio_nbytes = 4};
  c.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  c.aio_sigevent.sigev_signo = SIGRTMIN;
  c.aio_sigevent.sigev_value.sival_int = 41;
  CHECK_EQUAL(aio_read(&c), 0);
  const sigset_t set = set_of_signal(SIGRTMIN);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_code, SI_ASYNCIO);
  CHECK_EQUAL(info.si_value.sival_int, 41);
  CHECK_EQUAL(aio_return(&c), 0);
  c.aio_sigevent.sigev_notify = SIGEV_THREAD;
  c.aio_sigevent.sigev_notify_function = on_notice;
  c.aio_sigevent.sigev_notify_attributes = NULL;
  c.aio_sigevent.sigev_value.sival_int = 42;
  CHECK_EQUAL(aio_read(&c), 0);
  CHECK_EQUAL(sem_wait(&done), 0);
  CHECK_EQUAL(got, 42);
  return succeed();
}
