// SPDX-License-Identifier: Apache-2.0
// inotify's descriptors and watches: flags, numbers of watches, errors, buffers that are too small.
#include "../inotify.h"

int main(void) {
  enter_directory();
  make_file("f");
  CHECK_EQUAL(symlink("f", "link"), 0);
  FAILS(inotify_init1(-1), EINVAL);
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), null = open("/dev/null", O_RDONLY);
  CHECK_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
  CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  char room[64];
  FAILS(read(fd, room, sizeof room), EAGAIN);
  FAILS(write(fd, room, 1), EBADF);

  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_CREATE), 1);
  CHECK_EQUAL(inotify_add_watch(fd, "f", IN_OPEN), 2);
  CHECK_EQUAL(inotify_add_watch(fd, "link", IN_OPEN), 2);
  CHECK_EQUAL(inotify_add_watch(fd, "link", IN_OPEN | IN_DONT_FOLLOW), 3);
  CHECK_EQUAL(inotify_add_watch(fd, "../", IN_DELETE_SELF | IN_ONLYDIR), 4);
  FAILS(inotify_add_watch(fd, "f", IN_OPEN | IN_ONLYDIR), ENOTDIR);
  FAILS(inotify_add_watch(fd, "not", IN_OPEN), ENOENT);
  FAILS(inotify_add_watch(fd, "f", 0), EINVAL);
  FAILS(inotify_add_watch(fd, "f", 1u << 16), EINVAL);
  FAILS(inotify_add_watch(fd, "f", IN_OPEN | IN_MASK_ADD | IN_MASK_CREATE), EINVAL);
  FAILS(inotify_add_watch(fd, "f", IN_OPEN | IN_MASK_CREATE), EEXIST);
  FAILS(inotify_add_watch(-1, "f", IN_OPEN), EBADF);
  FAILS(inotify_add_watch(null, "f", IN_OPEN), EINVAL);
  FAILS(inotify_rm_watch(null, 1), EINVAL);
  FAILS(inotify_rm_watch(-1, 1), EBADF);
  FAILS(inotify_rm_watch(fd, 9), EINVAL);
  CHECK_EQUAL(inotify_rm_watch(fd, 2), 0);
  FAILS(inotify_rm_watch(fd, 2), EINVAL);
  EXPECT(fd, "2 ignored");
  CHECK_EQUAL(inotify_add_watch(fd, "f", IN_OPEN), 5);

  CHECK_EQUAL(mkdir("d", 0700), 0);
  int waiting = 0;
  CHECK_EQUAL(ioctl(fd, FIONREAD, &waiting), 0);
  CHECK_EQUAL(waiting, 32);
  FAILS(read(fd, room, 31), EINVAL);
  CHECK_EQUAL(read(fd, room, 32), 32);
  CHECK_EQUAL(rmdir("d"), 0);
  const int other = inotify_init();
  CHECK_EQUAL(inotify_add_watch(other, "f", IN_OPEN), 1);
  CHECK(unlink("f") == 0 && unlink("link") == 0 && close(fd) == 0 && close(other) == 0);
  leave_directory();
  return succeed();
}
