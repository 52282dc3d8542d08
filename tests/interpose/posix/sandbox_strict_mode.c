// SPDX-License-Identifier: Apache-2.0
// In seccomp's strict mode a process can read, write and end; any other call ends it.
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../child.h"

static int ends[2];

static int strict(int calls) {
  char byte = 'x';
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 9;
  if (write(ends[1], &byte, 1) != 1) syscall(SYS_exit, 8);
  if (read(ends[0], &byte, 1) != 1) syscall(SYS_exit, 7);
  if (calls) (void)getppid();
  syscall(SYS_exit, 5);
  return 6;
}

int main(void) {
  CHECK_EQUAL(pipe(ends), 0);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(strict, 0))), 5);
  const int status = status_of(start_process(strict, 1));
  CHECK(WIFSIGNALED(status));
  const int signo = WTERMSIG(status);
  CHECK(signo == SIGKILL || signo == SIGSYS);  // the kernel's strict mode sends SIGKILL
  return succeed();
}
