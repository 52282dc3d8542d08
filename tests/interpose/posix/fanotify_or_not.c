// SPDX-License-Identifier: Apache-2.0
// fanotify, where it is permitted: a mark on a file reports that it was opened, and by which
// process, with a descriptor of it; invalid flags fail with EINVAL.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/fanotify.h>

#include "../small.h"

int main(void) {
  if (geteuid() != 0) return succeed();
  const int n = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_CLOEXEC, O_RDONLY);
  if (n < 0) {
    CHECK(errno == EPERM || errno == ENOSYS);
    return succeed();
  }
  CHECK(fanotify_init(0x40000000u, O_RDONLY) == -1 && errno == EINVAL);
  char name[] = "/tmp/fanotifyXXXXXX";
  char b[1024] __attribute__((aligned(8)));
  const int f = mkstemp(name);
  CHECK_EQUAL(write(f, "x", 1), 1);
  CHECK_EQUAL(fanotify_mark(n, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, name), 0);
  CHECK(read(n, b, sizeof b) == -1 && errno == EAGAIN);
  CHECK_EQUAL(close(open(name, O_RDONLY)), 0);
  const ssize_t got = read(n, b, sizeof b);
  const struct fanotify_event_metadata* const e = (const struct fanotify_event_metadata*)b;
  CHECK(got > 0 && FAN_EVENT_OK(e, got));
  CHECK_EQUAL(e->mask, FAN_OPEN);
  char c;
  CHECK_EQUAL(pread(e->fd, &c, 1, 0), 1);
  CHECK_EQUAL(close(e->fd), 0);
  CHECK_EQUAL(unlink(name), 0);
  return succeed();
}
