// SPDX-License-Identifier: Apache-2.0
// When the master is closed, the session leader gets SIGHUP and SIGCONT; its terminal is at the
// end, and no longer its controlling terminal.
#include "../terminal.h"

static volatile sig_atomic_t hang_ups = 0, continues = 0;
static void count(int signo) {
  if (signo == SIGHUP) ++hang_ups;
  if (signo == SIGCONT) ++continues;
}

static void child(int told) {
  char b[8];
  struct winsize size;
  handle(SIGHUP, count, 0);
  handle(SIGCONT, count, 0);
  type_text(1, "ready\n");
  while (hang_ups == 0 || continues == 0) {
    const ssize_t n = read(0, b, sizeof b);
    // EIO: the kernel does not report the end of the file yet.
    CHECK(n == 0 || (n < 0 && (errno == EINTR || errno == EIO)));
  }
  CHECK_EQUAL(read(0, b, sizeof b), 0);
  CHECK_EQUAL(write(1, "x", 1), -1);
  CHECK_EQUAL(errno, EIO);
  CHECK_EQUAL(isatty(0), 0);
  CHECK_EQUAL(ioctl(0, TIOCGWINSZ, &size), -1);
  CHECK_EQUAL(errno, EIO);
  CHECK_EQUAL(events_of(0), POLLIN | POLLOUT | POLLERR | POLLHUP);
  CHECK_EQUAL(open("/dev/tty", O_RDWR), -1);
  CHECK_EQUAL(errno, ENXIO);
  CHECK_EQUAL(write(told, "k", 1), 1);
  _exit(4);
}

int main(void) {
  int master, ends[2];
  char b[8];
  CHECK_EQUAL(pipe(ends), 0);
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) child(ends[1]);
  close(ends[1]);
  expect(master, "ready\r\n");
  CHECK_EQUAL(close(master), 0);
  CHECK_EQUAL(read(ends[0], b, sizeof b), 1);
  CHECK_EQUAL(WEXITSTATUS(status_of_child(pid)), 4);
  return succeed();
}
