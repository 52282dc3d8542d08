// SPDX-License-Identifier: Apache-2.0
// Unread events beyond fs.inotify.max_queued_events are lost, and that is reported once.
#include "../inotify.h"

enum { kMost = 16384 };

int main(void) {
  enter_directory();
  const int fd = inotify_init1(IN_NONBLOCK);
  make_file("a");
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_OPEN | IN_CLOSE), 1);
  for (int i = 0; i < kMost / 2 + 3; ++i) CHECK_EQUAL(close(open("a", O_RDONLY)), 0);
  char room[32 * 64];
  int events = 0;
  ssize_t size;
  while (events < kMost && (size = read(fd, room, sizeof room)) > 0) {
    CHECK_EQUAL(size % 32, 0);
    events += (int)size / 32;
  }
  CHECK_EQUAL(events, kMost);
  EXPECT(fd, "-1 lost");
  CHECK_EQUAL(unlink("a"), 0);
  EXPECT(fd, "");
  CHECK_EQUAL(close(fd), 0);
  leave_directory();
  return succeed();
}
