// SPDX-License-Identifier: Apache-2.0
// lio_listio runs several requests, waits for them, and returns EIO if one of them failed.
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char path[] = "/tmp/aioXXXXXX", b[4] = {0};
  const int fd = mkstemp(path), only_read = open(path, O_RDONLY);
  CHECK_EQUAL(unlink(path), 0);
  struct aiocb w = {.aio_fildes = fd, .aio_buf = (void*)"wxyz", .aio_nbytes = 4};
  struct aiocb v = {.aio_fildes = only_read, .aio_buf = (void*)"v", .aio_nbytes = 1};
  struct aiocb r = {.aio_fildes = fd, .aio_buf = b, .aio_nbytes = 4};
  w.aio_lio_opcode = v.aio_lio_opcode = LIO_WRITE;
  r.aio_lio_opcode = LIO_READ;
  w.aio_sigevent.sigev_notify = v.aio_sigevent.sigev_notify = SIGEV_NONE;
  r.aio_sigevent.sigev_notify = SIGEV_NONE;
  struct aiocb* both[] = {&w, NULL, &v};
  CHECK_EQUAL(lio_listio(LIO_WAIT, both, 3, NULL), -1);
  CHECK_EQUAL(errno, EIO);
  CHECK_EQUAL(aio_error(&w), 0);
  CHECK_EQUAL(aio_return(&w), 4);
  CHECK_EQUAL(aio_error(&v), EBADF);
  struct aiocb* one[] = {&r};
  CHECK_EQUAL(lio_listio(LIO_WAIT, one, 1, NULL), 0);
  CHECK_EQUAL(aio_return(&r), 4);
  CHECK_EQUAL(memcmp(b, "wxyz", 4), 0);
  CHECK_EQUAL(lio_listio(77, one, 1, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
