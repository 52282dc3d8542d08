// SPDX-License-Identifier: Apache-2.0
// Asynchronous requests on a file: done when aio_suspend reports it, with their counts and errors.
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>

#include "../small.h"

static ssize_t finish(struct aiocb* c) {
  const struct aiocb* list[] = {c};
  while (aio_error(c) == EINPROGRESS) CHECK_EQUAL(aio_suspend(list, 1, NULL), 0);
  return aio_return(c);
}

int main(void) {
  char path[] = "/tmp/aioXXXXXX", b[8] = {0};
  const int fd = mkstemp(path);
  CHECK_EQUAL(unlink(path), 0);
  struct aiocb c = {.aio_fildes = fd, .aio_buf = (void*)"abcdef", .aio_nbytes = 6, .aio_offset = 2};
  c.aio_sigevent.sigev_notify = SIGEV_NONE;
  CHECK_EQUAL(aio_write(&c), 0);
  CHECK_EQUAL(finish(&c), 6);
  CHECK_EQUAL(aio_fsync(O_SYNC, &c), 0);
  CHECK_EQUAL(finish(&c), 0);
  c.aio_buf = b;
  c.aio_offset = 4;
  CHECK_EQUAL(aio_read(&c), 0);
  CHECK_EQUAL(finish(&c), 4);
  CHECK_EQUAL(memcmp(b, "cdef", 4), 0);
  CHECK_EQUAL(lseek(fd, 0, SEEK_CUR), 0);
  CHECK_EQUAL(aio_cancel(fd, NULL), AIO_ALLDONE);
  return succeed();
}
