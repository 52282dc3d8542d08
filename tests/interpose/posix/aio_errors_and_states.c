// SPDX-License-Identifier: Apache-2.0
// aio_*: errors are reported by the call or by aio_error, nothing is left to cancel afterwards, and
// aio_suspend does not wait for a request that has ended.
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>

#include "../small.h"

static int outcome(struct aiocb* c) {
  const struct aiocb* const list[] = {NULL, c};
  CHECK_EQUAL(aio_suspend(list, 2, NULL), 0);
  return aio_error(c);
}

int main(void) {
  char path[] = "/tmp/aio-errors-XXXXXX", text[8] = "hello";
  const int fd = mkstemp(path), reader = open(path, O_RDONLY);
  CHECK(fd >= 0 && reader >= 0);
  CHECK_EQUAL(unlink(path), 0);
  struct aiocb c = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 5};
  c.aio_sigevent.sigev_notify = SIGEV_NONE;
  CHECK_EQUAL(aio_write(&c), 0);
  CHECK_EQUAL(outcome(&c), 0);
  CHECK_EQUAL(aio_return(&c), 5);
  CHECK_EQUAL(aio_cancel(fd, NULL), AIO_ALLDONE);
  CHECK_EQUAL(aio_cancel(fd, &c), AIO_ALLDONE);
  CHECK_EQUAL(aio_cancel(1000, NULL), -1);
  CHECK_EQUAL(errno, EBADF);
  c.aio_offset = 100;
  CHECK_EQUAL(aio_read(&c), 0);
  CHECK_EQUAL(outcome(&c), 0);
  CHECK_EQUAL(aio_return(&c), 0);
  c.aio_offset = -1;
  CHECK_EQUAL(aio_read(&c), 0);
  CHECK_EQUAL(outcome(&c), EINVAL);
  CHECK_EQUAL(aio_return(&c), -1);
  c.aio_offset = 0;
  c.aio_fildes = reader;
  CHECK_EQUAL(aio_write(&c), 0);
  CHECK_EQUAL(outcome(&c), EBADF);
  c.aio_fildes = 1000;
  CHECK_EQUAL(aio_read(&c), 0);
  CHECK_EQUAL(outcome(&c), EBADF);
  CHECK_EQUAL(aio_fsync(O_SYNC, &c), -1);
  CHECK_EQUAL(errno, EBADF);
  c.aio_fildes = fd;
  CHECK_EQUAL(aio_fsync(77, &c), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(aio_fsync(O_DSYNC, &c), 0);
  CHECK_EQUAL(outcome(&c), 0);
  struct aiocb* const list[] = {&c};
  CHECK_EQUAL(lio_listio(77, list, 1, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
