// SPDX-License-Identifier: Apache-2.0
// pidfd_send_signal also accepts a process' directory in /proc, its own and a child's; after the
// wait for a child it returns ESRCH; a thread's directory and any other fail with EBADF.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

static volatile sig_atomic_t seen;
static void count(int signo) {
  (void)signo;
  ++seen;
}

static int send_signal(int fd, int signo) {
  return (int)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
}

static int directory_of(const char* format, int number) {
  char name[64];
  snprintf(name, sizeof name, format, number);
  const int fd = open(name, O_DIRECTORY | O_RDONLY);
  CHECK(fd >= 0);
  return fd;
}

int main(void) {
  handle(SIGUSR1, count, 0);
  const int own = directory_of("/proc/%d", getpid());
  CHECK_EQUAL(send_signal(own, 0), 0);
  CHECK_EQUAL(send_signal(own, SIGUSR1), 0);
  CHECK_EQUAL(seen, 1);
  CHECK_EQUAL(send_signal(own, 77), -1);
  CHECK_EQUAL(errno, EINVAL);
  const int thread = directory_of("/proc/self/task/%d", getpid());
  CHECK_EQUAL(send_signal(thread, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  const int below = directory_of("/proc/%d/fd", getpid());
  CHECK_EQUAL(send_signal(below, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  const int other = open("/tmp", O_RDONLY);
  CHECK_EQUAL(send_signal(other, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (;;) pause();
  }
  const int childs = directory_of("/proc/%d", child);
  CHECK_EQUAL(send_signal(childs, SIGKILL), 0);
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WTERMSIG(status), SIGKILL);
  CHECK_EQUAL(send_signal(childs, 0), -1);
  CHECK_EQUAL(errno, ESRCH);
  return succeed();
}
