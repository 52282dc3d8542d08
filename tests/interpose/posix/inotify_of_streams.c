// SPDX-License-Identifier: Apache-2.0
// The writes of a stream are reported when it is flushed or closed.
#include "../inotify.h"

int main(void) {
  enter_directory();
  const int fd = inotify_init1(IN_NONBLOCK);
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_ALL_EVENTS), 1);
  FILE* f = fopen("f", "w");
  CHECK(f != NULL && fputs("a line\n", f) >= 0);
  EXPECT(fd, "1 create f, 1 open f");
  CHECK_EQUAL(fflush(f), 0);
  EXPECT(fd, "1 modify f");
  CHECK_EQUAL(fflush(f), 0);  // nothing is left
  EXPECT(fd, "");
  CHECK(fputs("more", f) >= 0 && fclose(f) == 0);
  EXPECT(fd, "1 modify f, 1 close_write f");
  f = fopen("f", "a");
  CHECK(f != NULL && fclose(f) == 0);
  EXPECT(fd, "1 open f, 1 close_write f");
  CHECK(dprintf(STDOUT_FILENO, "%s", "") == 0);
  CHECK(unlink("f") == 0 && close(fd) == 0);
  leave_directory();
  return succeed();
}
