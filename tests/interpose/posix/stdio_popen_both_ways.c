// SPDX-License-Identifier: Apache-2.0
// popen reads from a command and writes to one; pclose returns its status; a second popen does not
// keep the first one's pipe open.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  char b[64], name[] = "/tmp/popenXXXXXX", command[64];
  FILE* f = popen("echo one; echo two; exit 7", "r");
  CHECK(f != NULL);
  CHECK(fgets(b, sizeof b, f) != NULL && strcmp(b, "one\n") == 0);
  CHECK(fgets(b, sizeof b, f) != NULL && strcmp(b, "two\n") == 0);
  CHECK(fgets(b, sizeof b, f) == NULL);
  CHECK_EQUAL(WEXITSTATUS(pclose(f)), 7);
  const int out = mkstemp(name);
  snprintf(command, sizeof command, "cat > %s", name);
  f = popen(command, "we");
  FILE* const other = popen("cat > /dev/null", "w");
  fputs("written", f);
  CHECK_EQUAL(pclose(f), 0);
  CHECK_EQUAL(pread(out, b, sizeof b, 0), 7);
  CHECK_EQUAL(memcmp(b, "written", 7), 0);
  CHECK_EQUAL(pclose(other), 0);
  f = popen("/not/there 2>/dev/null", "r");
  CHECK_EQUAL(WEXITSTATUS(pclose(f)), 127);
  f = popen("kill -9 $$", "r");
  const int status = pclose(f);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  CHECK_EQUAL(unlink(name), 0);
  return succeed();
}
