// SPDX-License-Identifier: Apache-2.0
// A watch on a file ends with the file: when its last name and its last descriptor are gone.
#include "../inotify.h"

int main(void) {
  enter_directory();
  const int fd = inotify_init1(IN_NONBLOCK);
  make_file("a");
  CHECK_EQUAL(inotify_add_watch(fd, "a", IN_ALL_EVENTS), 1);
  CHECK_EQUAL(link("a", "b"), 0);
  EXPECT(fd, "1 attrib");
  CHECK_EQUAL(rename("b", "c"), 0);
  EXPECT(fd, "1 moved");
  CHECK_EQUAL(unlink("c"), 0);
  EXPECT(fd, "1 attrib");
  CHECK_EQUAL(rename("a", "b"), 0);
  CHECK_EQUAL(unlink("b"), 0);
  EXPECT(fd, "1 moved, 1 attrib, 1 gone, 1 ignored");
  FAILS(inotify_rm_watch(fd, 1), EINVAL);

  // Open: it exists without a name.
  make_file("a");
  const int f = open("a", O_RDWR);
  CHECK_EQUAL(inotify_add_watch(fd, "a", IN_ALL_EVENTS), 2);
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_ALL_EVENTS), 3);
  const pid_t child = fork();
  if (child == 0) {
    sleep_ms(50);
    CHECK_EQUAL(close(f), 0);
    _exit(0);
  }
  CHECK_EQUAL(unlink("a"), 0);
  CHECK_EQUAL(close(f), 0);
  EXPECT(fd, "2 attrib, 3 delete a");
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  EXPECT(fd, "3 close_write a, 2 close_write, 2 gone, 2 ignored");

  // Another file takes the name.
  make_file("x");
  make_file("y");
  CHECK_EQUAL(inotify_add_watch(fd, "x", IN_DELETE_SELF | IN_ATTRIB | IN_MOVE_SELF), 4);
  CHECK_EQUAL(inotify_add_watch(fd, "y", IN_DELETE_SELF | IN_ATTRIB | IN_MOVE_SELF), 5);
  events_at(fd);
  CHECK_EQUAL(rename("x", "y"), 0);
  EXPECT(fd, "3 from x, 3 to y +, 5 attrib, 4 moved, 5 gone, 5 ignored");
  CHECK_EQUAL(inotify_rm_watch(fd, 3), 0);
  EXPECT(fd, "3 ignored");
  CHECK_EQUAL(mkdir("d", 0700), 0);
  CHECK_EQUAL(inotify_add_watch(fd, "d", IN_DELETE_SELF | IN_MOVE_SELF), 6);
  CHECK(rename("d", "e") == 0 && rmdir("e") == 0);
  EXPECT(fd, "6 moved, 6 gone, 6 ignored");
  CHECK_EQUAL(unlink("y"), 0);
  CHECK_EQUAL(close(fd), 0);
  leave_directory();
  return succeed();
}
