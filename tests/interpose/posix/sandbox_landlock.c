// SPDX-License-Identifier: Apache-2.0
// Landlock, where it exists: a rule set that handles writing and allows none prevents a child from
// making files, and from nothing else.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1u);
  if (version < 0) {
    CHECK(errno == ENOSYS || errno == EOPNOTSUPP);
    return succeed();
  }
  CHECK(version >= 1);
  char dir[] = "/tmp/landlockXXXXXX", name[64];
  CHECK(mkdtemp(dir) != NULL);
  snprintf(name, sizeof name, "%s/f", dir);
  const struct landlock_ruleset_attr a = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_REG};
  const int rules = (int)syscall(SYS_landlock_create_ruleset, &a, sizeof a, 0);
  CHECK(rules >= 0);
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(1);
    if (syscall(SYS_landlock_restrict_self, rules, 0) != 0) _exit(2);
    if (open(name, O_CREAT | O_RDWR, 0600) != -1 || errno != EACCES) _exit(3);
    _exit(open("/etc/passwd", O_RDONLY) >= 0 ? 42 : 4);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  CHECK_EQUAL(close(open(name, O_CREAT | O_RDWR, 0600)), 0);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
