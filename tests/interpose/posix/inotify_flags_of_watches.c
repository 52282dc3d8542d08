// SPDX-License-Identifier: Apache-2.0
// Masks are replaced or extended; a watch may be for one event, or for files with a name only;
// equal events in a row are reported once.
#include "../inotify.h"

int main(void) {
  enter_directory();
  const int fd = inotify_init1(IN_NONBLOCK);
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_CREATE), 1);
  make_file("a");
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_DELETE), 1);
  make_file("b");
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_MODIFY | IN_MASK_ADD), 1);
  CHECK_EQUAL(truncate("a", 1), 0);
  CHECK_EQUAL(unlink("b"), 0);
  EXPECT(fd, "1 create a, 1 modify a, 1 delete b");

  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_ALL_EVENTS | IN_ONESHOT), 1);
  CHECK_EQUAL(truncate("a", 2), 0);
  CHECK_EQUAL(truncate("a", 3), 0);
  EXPECT(fd, "1 modify a, 1 ignored");

  const int f = open("a", O_WRONLY), other = inotify_init1(IN_NONBLOCK);
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_MODIFY | IN_CLOSE | IN_EXCL_UNLINK), 2);
  CHECK_EQUAL(inotify_add_watch(other, ".", IN_MODIFY | IN_CLOSE), 1);
  CHECK(write(f, "x", 1) == 1 && write(f, "x", 1) == 1 && unlink("a") == 0);
  CHECK(write(f, "x", 1) == 1 && close(f) == 0);
  EXPECT(fd, "2 modify a");
  EXPECT(other, "1 modify a, 1 close_write a");

  // One instance that watches a file and its directory: the directory's watch comes first.
  make_file("c");
  CHECK_EQUAL(inotify_add_watch(fd, "c", IN_MODIFY), 3);
  CHECK_EQUAL(truncate("c", 1), 0);
  CHECK_EQUAL(truncate("c", 2), 0);
  EXPECT(fd, "2 close_write c, 2 modify c, 3 modify, 2 modify c, 3 modify");
  CHECK(unlink("c") == 0 && close(fd) == 0 && close(other) == 0);
  leave_directory();
  return succeed();
}
