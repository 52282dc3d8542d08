// SPDX-License-Identifier: Apache-2.0
// splice, tee and vmsplice need a pipe: two files and a closed descriptor are refused.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/uio.h>

#include "../small.h"

int main(void) {
  FILE* const t = tmpfile();
  const int f = fileno(t), null = open("/dev/null", O_RDWR);
  CHECK(splice(f, NULL, null, NULL, 1, 0) == -1 && errno == EINVAL);
  CHECK(splice(f, NULL, -1, NULL, 1, 0) == -1 && errno == EBADF);
  CHECK(splice(-1, NULL, f, NULL, 1, 0) == -1 && errno == EBADF);
  CHECK(tee(f, null, 1, 0) == -1 && errno == EINVAL);
  CHECK(tee(-1, null, 1, 0) == -1 && errno == EBADF);
  const struct iovec v = {(void*)"x", 1};
  CHECK(vmsplice(f, &v, 1, 0) == -1 && errno == EBADF);
  CHECK(vmsplice(-1, &v, 1, 0) == -1 && errno == EBADF);
  CHECK_EQUAL(splice(f, NULL, null, NULL, 0, 0), 0);
  return succeed();
}
