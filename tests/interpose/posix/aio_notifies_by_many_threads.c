// SPDX-License-Identifier: Apache-2.0
// Each of many requests in a row notifies by a thread; none is lost.
#define _GNU_SOURCE
#include <aio.h>

#include "../small.h"

enum { kMany = 150 };
static sem_t done;
static void on_notice(union sigval v) {
  (void)v;
  CHECK_EQUAL(sem_post(&done), 0);
}

int main(void) {
  static struct aiocb c[kMany];
  static char b[kMany][4];
  char path[] = "/tmp/aioXXXXXX";
  const int fd = mkstemp(path);
  CHECK_EQUAL(unlink(path), 0);
  CHECK_EQUAL(sem_init(&done, 0, 0), 0);
  for (int i = 0; i < kMany; ++i) {
    c[i].aio_fildes = fd;
    c[i].aio_buf = b[i];
    c[i].aio_nbytes = 4;
    c[i].aio_sigevent.sigev_notify = SIGEV_THREAD;
    c[i].aio_sigevent.sigev_notify_function = on_notice;
    CHECK_EQUAL(aio_read(&c[i]), 0);
  }
  for (int i = 0; i < kMany; ++i) CHECK_EQUAL(sem_wait(&done), 0);
  return succeed();
}
