// SPDX-License-Identifier: Apache-2.0
// Watches are added and removed while other threads read and write: whether a call takes a turn for
// its report depends on the schedule alone, which the runner compares.
#include "../inotify.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* use_file(void* given) {
  char b[16];
  const int f = open(given, O_RDWR);
  for (int i = 0; i < 20000; ++i) {
    CHECK_EQUAL(pread(f, b, sizeof b, 0), 16);
    if (i % 97 == 0) CHECK_EQUAL(pwrite(f, b, 1, 0), 1);
    if (i % 500 != 0) continue;
    CHECK_EQUAL(pthread_mutex_lock(&lock), 0);
    CHECK_EQUAL(pthread_mutex_unlock(&lock), 0);
  }
  CHECK_EQUAL(close(f), 0);
  return NULL;
}

// However many there are: natively that depends on speed.
static void forget_events(int fd) {
  static char room[8192] __attribute__((aligned(8)));
  while (read(fd, room, sizeof room) > 0) {
  }
  CHECK_EQUAL(errno, EAGAIN);
}

int main(void) {
  static char names[][2] = {"a", "b"};
  enter_directory();
  for (int i = 0; i < 2; ++i) {
    make_file(names[i]);
    CHECK_EQUAL(truncate(names[i], 100), 0);
  }
  const int fd = inotify_init1(IN_NONBLOCK);
  const pthread_t a = start(use_file, names[0]), b = start(use_file, names[1]);
  for (int i = 0; i < 40; ++i) {
    const int watch = inotify_add_watch(fd, ".", IN_ACCESS | IN_MODIFY);
    CHECK_EQUAL(watch, i + 1);
    sched_yield();
    CHECK_EQUAL(inotify_rm_watch(fd, watch), 0);
    forget_events(fd);
    CHECK_EQUAL(pthread_mutex_lock(&lock), 0);
    CHECK_EQUAL(pthread_mutex_unlock(&lock), 0);
  }
  join(a);
  join(b);
  CHECK(unlink("a") == 0 && unlink("b") == 0 && close(fd) == 0);
  leave_directory();
  return succeed();
}
