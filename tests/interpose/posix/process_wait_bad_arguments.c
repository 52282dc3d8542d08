// SPDX-License-Identifier: Apache-2.0
// wait4 and waitid return errors for numbers that no process or group can have, and for unknown
// options and kinds.
#define _GNU_SOURCE
#include <limits.h>
#include <sys/resource.h>

#include "../child.h"

static void refuses(idtype_t type, id_t id, int options, int error) {
  siginfo_t info;
  CHECK_EQUAL(waitid(type, id, &info, options), -1);
  CHECK_EQUAL(errno, error);
}

static int leaves(int status) { return status; }

int main(void) {
  const pid_t child = start_process(leaves, 3);
  refuses(P_ALL, 0, 0, EINVAL);
  refuses(P_ALL, 0, WNOHANG, EINVAL);
  refuses(P_ALL, 0, WEXITED | 0x100, EINVAL);
  refuses((idtype_t)77, 0, WEXITED, EINVAL);
  refuses(P_PID, 0, WEXITED | WNOHANG, EINVAL);
  refuses(P_PGID, (id_t)-5, WEXITED | WNOHANG, EINVAL);
  refuses(P_PID, 0x3ffffffe, WEXITED, ECHILD);
  refuses(P_PGID, 0x3ffffffe, WEXITED, ECHILD);
  CHECK_EQUAL(waitpid(INT_MIN, NULL, 0), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(waitpid(child, NULL, 0x100), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(waitpid(-0x3ffffffe, NULL, 0), -1);
  CHECK_EQUAL(errno, ECHILD);
  CHECK_EQUAL(waitpid(child, NULL, WEXITED), -1);
  CHECK_EQUAL(errno, EINVAL);
  siginfo_t info;
  CHECK_EQUAL(waitid(P_PGID, 0, &info, WEXITED | WNOWAIT), 0);
  CHECK_EQUAL(info.si_pid, child);
  CHECK_EQUAL(info.si_status, 3);
  CHECK_EQUAL(waitid(P_PID, (id_t)child, NULL, WEXITED), 0);
  CHECK_EQUAL(wait(NULL), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
