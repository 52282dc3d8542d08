// SPDX-License-Identifier: Apache-2.0
// A request filled with zeros sends no notification: its sigevent names signal 0. One with an
// invalid signal number fails.
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/aio-XXXXXX";
  const int fd = mkstemp(name);
  CHECK(fd >= 0);
  unlink(name);
  for (int signo = 0; signo <= 1000; signo += 100) {
    struct aiocb c;
    memset(&c, 0, sizeof c);
    c.aio_fildes = fd;
    c.aio_buf = "data";
    c.aio_nbytes = 4;
    c.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
    c.aio_sigevent.sigev_signo = signo;
    CHECK_EQUAL(aio_write(&c), 0);
    const struct aiocb* list[] = {&c};
    while (aio_error(&c) == EINPROGRESS) aio_suspend(list, 1, NULL);
    CHECK_EQUAL(aio_error(&c), signo == 0 ? 0 : EINVAL);
    CHECK_EQUAL(aio_return(&c), signo == 0 ? 4 : -1);
  }
  struct aiocb c;
  memset(&c, 0, sizeof c);
  c.aio_fildes = fd;
  CHECK_EQUAL(aio_fsync(O_SYNC, &c), 0);
  return succeed();
}
