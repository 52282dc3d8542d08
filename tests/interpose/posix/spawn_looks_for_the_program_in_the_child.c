// SPDX-License-Identifier: Apache-2.0
// posix_spawn resolves a relative path after the actions that change the directory; it returns an
// error if the path does not exist or is not a program.
#define _GNU_SOURCE
#include <spawn.h>

#include "../child.h"

static char name[] = "true";
static char* const argv[] = {name, NULL};
extern char** environ;

int main(void) {
  posix_spawn_file_actions_t a;
  pid_t child = -1;
  CHECK_EQUAL(setenv("PATH", "/usr/bin:/bin", 1), 0);
  CHECK_EQUAL(posix_spawn(&child, "./nowhere", NULL, NULL, argv, environ), ENOENT);
  CHECK_EQUAL(posix_spawn(&child, "/etc/passwd", NULL, NULL, argv, environ), EACCES);
  CHECK_EQUAL(posix_spawnp(&child, "no-such-program", NULL, NULL, argv, environ), ENOENT);
  CHECK_EQUAL(posix_spawnp(&child, "true", NULL, NULL, argv, environ), 0);
  CHECK_EQUAL(status_of(child), 0);
  CHECK_EQUAL(posix_spawn_file_actions_init(&a), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addchdir_np(&a, "/bin"), 0);
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(posix_spawn(&child, "./true", &a, NULL, argv, environ), 0);
  CHECK_EQUAL(status_of(child), 0);
  return succeed();
}
