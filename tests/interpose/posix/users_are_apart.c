// SPDX-License-Identifier: Apache-2.0
// Processes of one server under two users: neither can signal, trace, read, limit or re-prioritise
// the other, in both directions; each can do so with its own.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../child.h"

static int ready[2], go[2];

static void become(uid_t user) {
  CHECK_EQUAL(setresgid(user, user, user), 0);
  CHECK_EQUAL(setresuid(user, user, user), 0);
  CHECK_EQUAL(prctl(PR_SET_DUMPABLE, 1), 0);
}

static int victim(int user) {
  char byte = 'r';
  become((uid_t)user);
  CHECK_EQUAL(write(ready[1], &byte, 1), 1);
  CHECK_EQUAL(read(go[0], &byte, 1), 1);
  return 21;
}

static pid_t target;
static long word;

static void is_refused(long result, int error) {
  CHECK_EQUAL(result, -1);
  CHECK_EQUAL(errno, error);
}

static int attacker(int user) {
  become((uid_t)user);
  const union sigval value = {.sival_int = 1};
  is_refused(kill(target, 0), EPERM);
  is_refused(kill(target, SIGTERM), EPERM);
  is_refused(kill(-target, SIGTERM), ESRCH);  // the target leads no group
  is_refused(sigqueue(target, SIGUSR1, value), EPERM);
  is_refused(syscall(SYS_tgkill, target, target, SIGTERM), EPERM);
  is_refused(ptrace(PTRACE_ATTACH, target, 0, 0), EPERM);
  is_refused(setpriority(PRIO_PROCESS, (id_t)target, 10), EPERM);
  const struct sched_param idle = {0};
  is_refused(sched_setscheduler(target, SCHED_IDLE, &idle), EPERM);
  is_refused(sched_setparam(target, &idle), EPERM);
  cpu_set_t all;
  CPU_ZERO(&all);
  CPU_SET(0, &all);
  is_refused(sched_setaffinity(target, sizeof all, &all), EPERM);
  const struct rlimit none = {0, 0};
  is_refused(prlimit(target, RLIMIT_CORE, &none, NULL), EPERM);
  const struct iovec mine = {&word, sizeof word}, its = {&word, sizeof word};
  is_refused(process_vm_writev(target, &mine, 1, &its, 1, 0), EPERM);
  const int handle = (int)syscall(SYS_pidfd_open, target, 0);
  CHECK(handle >= 0);
  is_refused(syscall(SYS_pidfd_send_signal, handle, SIGTERM, NULL, 0), EPERM);
  CHECK_EQUAL(close(handle), 0);
  return 22;
}

static int own(int user) {
  become((uid_t)user);
  CHECK_EQUAL(kill(target, 0), 0);
  CHECK_EQUAL(setpriority(PRIO_PROCESS, (id_t)target, 5), 0);
  CHECK_EQUAL(kill(target, SIGTERM), 0);
  return 23;
}

static void try_it(int victims, int attackers) {
  char byte = 'g';
  target = start_process(victim, victims);
  CHECK_EQUAL(read(ready[0], &byte, 1), 1);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(attacker, attackers))), 22);
  CHECK_EQUAL(write(go[1], &byte, 1), 1);
  CHECK_EQUAL(WEXITSTATUS(status_of(target)), 21);
  target = start_process(victim, victims);
  CHECK_EQUAL(read(ready[0], &byte, 1), 1);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(own, victims))), 23);
  CHECK_EQUAL(WTERMSIG(status_of(target)), SIGTERM);
}

int main(void) {
  if (geteuid() != 0) return succeed();
  CHECK_EQUAL(pipe(ready), 0);
  CHECK_EQUAL(pipe(go), 0);
  try_it(65534, 65533);
  try_it(65533, 65534);
  return succeed();
}
