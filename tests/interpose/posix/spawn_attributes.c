// SPDX-License-Identifier: Apache-2.0
// The attributes of posix_spawn take effect in the child: mask and default actions, group, session,
// and scheduling policy.
#define _GNU_SOURCE
#include <spawn.h>

#include "../child.h"

extern char** environ;

static int look(const char* what) {
  sigset_t mask;
  struct sigaction a;
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
  CHECK_EQUAL(sigismember(&mask, SIGUSR2), 1);
  CHECK_EQUAL(sigismember(&mask, SIGUSR1), 0);
  CHECK_EQUAL(sigaction(SIGHUP, NULL, &a), 0);
  CHECK(a.sa_handler == SIG_DFL);
  CHECK_EQUAL(sigaction(SIGTERM, NULL, &a), 0);
  CHECK(a.sa_handler == SIG_IGN);
  if (*what == 's') {
    CHECK_EQUAL(getsid(0), getpid());
    CHECK_EQUAL(getpgrp(), getpid());
  } else if (*what == 'g') {
    CHECK_EQUAL(getpgrp(), getpid());
    CHECK(getsid(0) != getpid());
  } else {
    CHECK_EQUAL(sched_getscheduler(0), SCHED_OTHER);
  }
  return 7;
}

static void spawn(short more, const char* what) {
  posix_spawnattr_t t;
  sigset_t mask = set_of_signal(SIGUSR2), defaults = set_of_signal(SIGHUP);
  const struct sched_param none = {0};
  pid_t child = -1;
  char own[] = "again", argument[2] = {*what, 0};
  char* const argv[] = {own, argument, NULL};
  const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | more;
  short got = 0;
  CHECK_EQUAL(posix_spawnattr_init(&t), 0);
  CHECK_EQUAL(posix_spawnattr_setflags(&t, flags), 0);
  CHECK_EQUAL(posix_spawnattr_getflags(&t, &got), 0);
  CHECK_EQUAL(got, flags);
  CHECK_EQUAL(posix_spawnattr_setsigmask(&t, &mask), 0);
  CHECK_EQUAL(posix_spawnattr_setsigdefault(&t, &defaults), 0);
  CHECK_EQUAL(posix_spawnattr_setpgroup(&t, 0), 0);
  CHECK_EQUAL(posix_spawnattr_setschedpolicy(&t, SCHED_OTHER), 0);
  CHECK_EQUAL(posix_spawnattr_setschedparam(&t, &none), 0);
  CHECK_EQUAL(posix_spawn(&child, "/proc/self/exe", NULL, &t, argv, environ), 0);
  CHECK_EQUAL(status_of(child), 7 << 8);
  CHECK_EQUAL(posix_spawnattr_destroy(&t), 0);
}

int main(int argc, char** argv) {
  if (argc > 1) return look(argv[1]);
  block_signal(SIGUSR1);
  signal(SIGHUP, SIG_IGN);
  CHECK_EQUAL(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}), 0);
  signal(SIGTERM, SIG_IGN);
  spawn(POSIX_SPAWN_SETSID, "s");
  spawn(POSIX_SPAWN_SETPGROUP, "g");
  spawn(POSIX_SPAWN_SETSCHEDULER, "b");
  return succeed();
}
