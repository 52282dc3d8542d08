// SPDX-License-Identifier: Apache-2.0
// preadv2 and pwritev2: an offset of -1 means the position, RWF_APPEND writes at the end; refused
// counts and flags; pread fails without a position.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char name[] = "/tmp/vectorXXXXXX", a[3], b[8];
  const int f = mkstemp(name);
  CHECK_EQUAL(unlink(name), 0);
  const struct iovec out[] = {{(void*)"ab", 2}, {NULL, 0}, {(void*)"cdef", 4}};
  CHECK_EQUAL(pwritev(f, out, 3, 2), 6);
  CHECK_EQUAL(lseek(f, 0, SEEK_CUR), 0);
  CHECK_EQUAL(pwritev2(f, out, 1, -1, 0), 2);
  CHECK_EQUAL(lseek(f, 0, SEEK_CUR), 2);
  CHECK_EQUAL(pwritev2(f, out, 1, 0, RWF_APPEND), 2);
  CHECK_EQUAL(lseek(f, 0, SEEK_CUR), 2);
  CHECK_EQUAL(pwritev2(f, out, 1, 0, RWF_DSYNC), 2);
  CHECK_EQUAL(lseek(f, 0, SEEK_END), 10);
  const struct iovec in[] = {{a, sizeof a}, {b, sizeof b}};
  CHECK_EQUAL(preadv(f, in, 2, 1), 9);
  CHECK_EQUAL(memcmp(a, "bab", 3), 0);
  CHECK_EQUAL(memcmp(b, "cdefab", 6), 0);
  CHECK_EQUAL(lseek(f, 8, SEEK_SET), 8);
  CHECK_EQUAL(preadv2(f, in, 2, -1, 0), 2);
  CHECK_EQUAL(preadv2(f, in, 2, -1, 0), 0);
  CHECK_EQUAL(preadv(f, in, 0, 0), 0);
  FAILS(preadv(f, in, 2, -1), EINVAL);
  FAILS(preadv2(f, in, 2, -2, 0), EINVAL);
  FAILS(preadv2(f, in, 2, 0, 0x40000000), EOPNOTSUPP);
  volatile int negative_count = -1;
  FAILS(readv(f, in, negative_count), EINVAL);
  static struct iovec many[IOV_MAX + 1];
  FAILS(writev(f, many, IOV_MAX + 1), EINVAL);
  CHECK_EQUAL(writev(f, many, IOV_MAX), 0);
  const struct iovec negative[] = {{a, 1}, {b, (size_t)-1}};
  FAILS(readv(f, negative, 2), EINVAL);
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  FAILS(preadv(fds[0], in, 2, 0), ESPIPE);
  FAILS(pwrite(fds[1], "x", 1, 0), ESPIPE);
  FAILS(pread(fds[0], b, 1, 0), ESPIPE);
  CHECK_EQUAL(pwritev2(fds[1], out, 3, -1, 0), 6);
  CHECK_EQUAL(preadv2(fds[0], in, 2, -1, 0), 6);
  return succeed();
}
