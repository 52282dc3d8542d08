// SPDX-License-Identifier: Apache-2.0
// A watch on a directory reports each name that is made, moved or removed in it.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>

#include "../inotify.h"

int main(void) {
  enter_directory();
  const int fd = inotify_init1(IN_NONBLOCK);
  CHECK_EQUAL(mkdir("sub", 0700), 0);
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_ALL_EVENTS), 1);
  CHECK_EQUAL(inotify_add_watch(fd, "sub", IN_ALL_EVENTS), 2);

  const int f = open("a", O_CREAT | O_RDWR, 0600);
  CHECK(write(f, "x", 1) == 1 && close(f) == 0);
  EXPECT(fd, "1 create a, 1 open a, 1 modify a, 1 close_write a");
  CHECK_EQUAL(rename("a", "b"), 0);
  EXPECT(fd, "1 from a, 1 to b +");
  CHECK_EQUAL(rename("b", "sub/c"), 0);
  EXPECT(fd, "1 from b, 2 to c +");
  CHECK_EQUAL(link("sub/c", "d"), 0);
  EXPECT(fd, "1 create d");
  CHECK_EQUAL(unlink("d"), 0);
  EXPECT(fd, "1 delete d");
  CHECK(symlink("sub", "s") == 0 && mkfifo("p", 0600) == 0 && mkdir("dir/", 0700) == 0);
  EXPECT(fd, "1 create s, 1 create p, 1 create/ dir");
  CHECK_EQUAL(renameat2(AT_FDCWD, "s", AT_FDCWD, "p", RENAME_EXCHANGE), 0);
  EXPECT(fd, "1 from s, 1 to p +, 1 from p, 1 to s +");
  CHECK(unlink("s") == 0 && unlinkat(AT_FDCWD, "p", 0) == 0 && rmdir("dir") == 0);
  EXPECT(fd, "1 delete s, 1 delete p, 1 delete/ dir");
  CHECK_EQUAL(unlink("s/c"), -1);
  CHECK_EQUAL(unlink("sub/c"), 0);
  EXPECT(fd, "2 delete c");
  char made[] = "tXXXXXX";
  CHECK(mkdtemp(made) != NULL && rename(made, "t") == 0 && rmdir("t") == 0);
  events_at(fd);
  FAILS(mkdir("sub", 0700), EEXIST);
  FAILS(open("sub/none", O_RDONLY), ENOENT);
  EXPECT(fd, "");
  const struct sockaddr_un name = {AF_UNIX, "sub/socket"};
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(s, (const struct sockaddr*)&name, sizeof name), 0);
  CHECK(close(s) == 0 && unlink("sub/socket") == 0);
  EXPECT(fd, "2 create socket, 2 delete socket");
  CHECK_EQUAL(rmdir("sub"), 0);
  EXPECT(fd, "2 gone, 2 ignored, 1 delete/ sub");
  close(fd);
  leave_directory();
  return succeed();
}
