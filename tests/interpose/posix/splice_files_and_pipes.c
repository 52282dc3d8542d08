// SPDX-License-Identifier: Apache-2.0
// splice moves bytes between files and pipes: by the caller's offset or by the position, in part,
// and nothing at the end; its errors.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/spliceXXXXXX", b[32];
  const int file = mkstemp(name);
  CHECK(file >= 0);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(write(file, "0123456789", 10), 10);
  int a[2], c[2];
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(c), 0);
  loff_t at = 4;
  CHECK_EQUAL(splice(file, &at, a[1], NULL, 3, 0), 3);
  CHECK_EQUAL(at, 7);
  CHECK_EQUAL(lseek(file, 0, SEEK_CUR), 10);
  CHECK_EQUAL(splice(file, NULL, a[1], NULL, 3, 0), 0);
  CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
  CHECK_EQUAL(splice(file, NULL, a[1], NULL, 2, SPLICE_F_MOVE), 2);
  CHECK_EQUAL(lseek(file, 0, SEEK_CUR), 2);
  CHECK_EQUAL(splice(a[0], NULL, c[1], NULL, 4, 0), 4);
  CHECK_EQUAL(read(a[0], b, sizeof b), 1);
  CHECK_EQUAL(b[0], '1');
  at = 20;
  CHECK_EQUAL(splice(c[0], NULL, file, &at, 100, 0), 4);
  CHECK_EQUAL(at, 24);
  CHECK_EQUAL(pread(file, b, sizeof b, 18), 6);
  CHECK_EQUAL(memcmp(b,
                     "\0\0"
                     "4560",
                     6),
              0);
  CHECK_EQUAL(splice(c[0], NULL, a[1], NULL, 1, SPLICE_F_NONBLOCK), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(splice(c[0], &at, file, NULL, 1, 0), -1);
  CHECK_EQUAL(errno, ESPIPE);
  CHECK_EQUAL(splice(file, NULL, file, NULL, 1, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(splice(a[0], NULL, a[1], NULL, 1, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(splice(-1, NULL, a[1], NULL, 1, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(close(c[1]), 0);
  CHECK_EQUAL(splice(c[0], NULL, a[1], NULL, 1, 0), 0);
  return succeed();
}
