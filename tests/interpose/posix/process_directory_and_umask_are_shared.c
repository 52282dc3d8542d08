// SPDX-License-Identifier: Apache-2.0
// All threads share the directory and the umask, each child has a copy; the errors of getcwd.
#define _GNU_SOURCE
#include <sys/stat.h>

#include "../child.h"

static char base[] = "/tmp/shared-XXXXXX";

static void* change(void* unused) {
  CHECK_EQUAL(chdir(base), 0);
  CHECK_EQUAL(umask(027), 022);
  return unused;
}

static int change_own(int unused) {
  CHECK_EQUAL(umask(077), 027);
  CHECK_EQUAL(chdir("/"), 0);
  return unused;
}

int main(void) {
  char text[200];
  umask(022);
  CHECK(mkdtemp(base) != NULL);
  CHECK_EQUAL(chdir("/"), 0);
  elsewhere(change, NULL);
  CHECK(getcwd(text, sizeof text) == text);
  CHECK_EQUAL(strcmp(text, base), 0);
  CHECK_EQUAL(status_of(start_process(change_own, 0)), 0);
  CHECK(getcwd(text, sizeof text) == text);
  CHECK_EQUAL(strcmp(text, base), 0);
  CHECK_EQUAL(umask(022), 027);
  CHECK(getcwd(text, 5) == NULL);
  CHECK_EQUAL(errno, ERANGE);
  CHECK(getcwd(text, 0) == NULL);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(chdir("/nowhere"), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(chdir("/etc/passwd"), -1);
  CHECK_EQUAL(errno, ENOTDIR);
  CHECK_EQUAL(fchdir(1000), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(rmdir(base), 0);
  CHECK(getcwd(text, sizeof text) == NULL);
  CHECK_EQUAL(errno, ENOENT);
  return succeed();
}
