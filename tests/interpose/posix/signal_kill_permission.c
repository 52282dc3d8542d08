// SPDX-License-Identifier: Apache-2.0
// kill, killpg, sigqueue and tgkill: another user's process cannot be signalled, one's own can; a
// privileged process can signal all; SIGCONT reaches all processes of a session.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

enum { kOne = 1001, kTwo = 1002 };

static volatile sig_atomic_t caught;
static void on_signal(int signo) { caught = signo; }

static int as_user(uid_t user, pid_t target, int wanted) {
  if (setresuid(user, user, user) != 0) return 2;
  const union sigval value = {.sival_int = 1};
  errno = 0;
  if (kill(target, 0) != wanted || (wanted != 0 && errno != EPERM)) return 3;
  if (kill(target, SIGUSR1) != wanted || (wanted != 0 && errno != EPERM)) return 4;
  if (sigqueue(target, SIGUSR1, value) != wanted || (wanted != 0 && errno != EPERM)) return 5;
  if (syscall(SYS_tgkill, target, target, SIGUSR1) != wanted) return 6;
  if (wanted != 0 && errno != EPERM) return 7;
  if (kill(target, SIGCONT) != 0) return 8;  // one session
  return 0;
}

static int status_of(pid_t child) {
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WIFEXITED(status), 1);
  return WEXITSTATUS(status);
}

int main(void) {
  if (geteuid() != 0) return succeed();  // only root can change its user
  (void)setpgid(0, 0);
  signal(SIGUSR1, on_signal);
  int ready[2], end[2];
  CHECK_EQUAL(pipe(ready), 0);
  CHECK_EQUAL(pipe(end), 0);
  const pid_t target = fork();
  if (target == 0) {
    close(end[1]);
    if (setresuid(kOne, kOne, kOne) != 0) _exit(2);
    char byte = caught != 0;
    if (write(ready[1], &byte, 1) != 1) _exit(3);
    while (read(end[0], &byte, 1) < 0 && errno == EINTR) {
    }
    _exit(caught == SIGUSR1 ? 7 : 8);
  }
  char byte;
  CHECK_EQUAL(read(ready[0], &byte, 1), 1);
  // Another user, the same user, and its parent, which is root.
  const pid_t stranger = fork();
  if (stranger == 0) _exit(as_user(kTwo, target, -1));
  CHECK_EQUAL(status_of(stranger), 0);
  const pid_t to_root = fork();
  if (to_root == 0) _exit(as_user(kTwo, getppid(), -1));
  CHECK_EQUAL(status_of(to_root), 0);
  CHECK_EQUAL(caught, 0);
  const pid_t own = fork();
  if (own == 0) _exit(as_user(kOne, target, 0));
  CHECK_EQUAL(status_of(own), 0);
  CHECK_EQUAL(kill(target, 0), 0);
  // A whole group: permitted if one of its members may be signalled.
  const pid_t group = fork();
  if (group == 0) {
    if (setpgid(0, 0) != 0 || setresuid(kTwo, kTwo, kTwo) != 0) _exit(2);
    _exit(kill(0, 0) == 0 && killpg(getpgid(getppid()), 0) == -1 && errno == EPERM ? 0 : 3);
  }
  CHECK_EQUAL(status_of(group), 0);
  close(end[1]);
  CHECK_EQUAL(status_of(target), 7);
  return succeed();
}
