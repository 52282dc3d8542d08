// SPDX-License-Identifier: Apache-2.0
// posix_spawn returns an error if an action or an attribute fails in the child, and leaves no child
// behind.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>

#include "../child.h"

static char name[] = "true";
static char* const argv[] = {name, NULL};
extern char** environ;

static void fails(posix_spawn_file_actions_t* a, posix_spawnattr_t* t, int error) {
  pid_t child = -1;
  CHECK_EQUAL(posix_spawn(&child, "/bin/true", a, t, argv, environ), error);
  CHECK_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
  CHECK_EQUAL(errno, ECHILD);
}

int main(void) {
  posix_spawn_file_actions_t a;
  posix_spawnattr_t t;
  CHECK_EQUAL(posix_spawn_file_actions_init(&a), 0);
  CHECK_EQUAL(posix_spawn_file_actions_adddup2(&a, 999, 0), 0);
  fails(&a, NULL, EBADF);
  posix_spawn_file_actions_destroy(&a);
  CHECK_EQUAL(posix_spawn_file_actions_init(&a), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addopen(&a, 5, "/nowhere/at/all", O_RDONLY, 0), 0);
  fails(&a, NULL, ENOENT);
  posix_spawn_file_actions_destroy(&a);
  CHECK_EQUAL(posix_spawn_file_actions_init(&a), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addchdir_np(&a, "/nowhere"), 0);
  fails(&a, NULL, ENOENT);
  posix_spawn_file_actions_destroy(&a);
  CHECK_EQUAL(posix_spawnattr_init(&t), 0);
  CHECK_EQUAL(posix_spawnattr_setflags(&t, POSIX_SPAWN_SETPGROUP), 0);
  CHECK_EQUAL(posix_spawnattr_setpgroup(&t, 0x3ffffffe), 0);
  fails(NULL, &t, EPERM);
  return succeed();
}
