// SPDX-License-Identifier: Apache-2.0
// posix_fadvise, readahead, sync_file_range, syncfs, fsync and fdatasync of a file succeed; bad
// arguments return errors.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  FILE* const t = tmpfile();
  const int f = fileno(t);
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(write(f, "text", 4), 4);
  CHECK_EQUAL(fsync(f), 0);
  CHECK_EQUAL(fdatasync(f), 0);
  CHECK_EQUAL(syncfs(f), 0);
  CHECK_EQUAL(sync_file_range(f, 0, 0, SYNC_FILE_RANGE_WRITE), 0);
  CHECK_EQUAL(posix_fadvise(f, 0, 0, POSIX_FADV_SEQUENTIAL), 0);
  CHECK_EQUAL(posix_fadvise(f, 0, 4, POSIX_FADV_DONTNEED), 0);
  CHECK_EQUAL(posix_fadvise(f, 0, 0, 77), EINVAL);
  CHECK_EQUAL(posix_fadvise(-1, 0, 0, POSIX_FADV_NORMAL), EBADF);
  CHECK_EQUAL(readahead(f, 0, 4), 0);
  CHECK(readahead(fds[0], 0, 4) == -1 && errno == EINVAL);
  CHECK(sync_file_range(fds[0], 0, 0, SYNC_FILE_RANGE_WRITE) == -1 && errno == ESPIPE);
  CHECK(sync_file_range(f, -1, 0, SYNC_FILE_RANGE_WRITE) == -1 && errno == EINVAL);
  CHECK(fsync(-1) == -1 && errno == EBADF);
  CHECK(syncfs(-1) == -1 && errno == EBADF);
  return succeed();
}
