// SPDX-License-Identifier: Apache-2.0
// All descriptors that the kernel permits a process are in use: it still forks, repeatedly, and so
// do its children; one that has closed one of them executes another program.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../small.h"

static int status_of(pid_t child) {
  int status = 0;
  CHECK(child > 0);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}

static int child_of_a_child(void) {
  const pid_t child = fork();
  if (child == 0) _exit(5);
  return status_of(child);
}

int main(void) {
  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
  int last = -1, made;
  while ((made = fcntl(0, F_DUPFD, 0)) >= 0) last = made;
  CHECK_EQUAL(errno, EMFILE);
  CHECK(last >= 0);
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(child_of_a_child());
    CHECK_EQUAL(status_of(child), 5);
  }
  const pid_t child = fork();
  if (child == 0) {
    close(last);
    execl("/bin/sh", "sh", "-c", "exit 7", NULL);
    _exit(1);
  }
  CHECK_EQUAL(status_of(child), 7);
  CHECK_EQUAL(fcntl(0, F_DUPFD, 0), -1);
  return succeed();
}
