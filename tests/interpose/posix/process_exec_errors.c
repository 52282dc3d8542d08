// SPDX-License-Identifier: Apache-2.0
// exec's errors: missing, no permission, a directory, a loop of links, a name too long, not a
// program, too many arguments.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../child.h"

static char base[] = "/tmp/exec-errors-XXXXXX", name[] = "x";
static char* argv[] = {name, NULL};

static void fails(const char* path, int error) {
  CHECK_EQUAL(execv(path, argv), -1);
  CHECK_EQUAL(errno, error);
}

static void make(const char* path, const char* text, int mode) {
  const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
  CHECK(fd >= 0);
  CHECK_EQUAL(write(fd, text, strlen(text)), strlen(text));
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(chmod(path, mode), 0);
}

int main(void) {
  char long_name[400];
  memset(long_name, 'n', sizeof long_name);
  long_name[sizeof long_name - 1] = 0;
  CHECK(mkdtemp(base) != NULL);
  CHECK_EQUAL(chdir(base), 0);
  fails("", ENOENT);
  fails("nowhere", ENOENT);
  fails("/etc/passwd/x", ENOTDIR);
  fails("/tmp", EACCES);
  fails(long_name, ENAMETOOLONG);
  make("plain", "hello", 0600);
  fails("./plain", EACCES);
  make("text", "hello", 0700);
  fails("./text", ENOEXEC);
  make("script", "#!/nowhere/at/all\n", 0700);
  fails("./script", ENOENT);
  make("empty", "", 0700);
  fails("./empty", ENOEXEC);
  CHECK_EQUAL(symlink("loop", "loop"), 0);
  fails("./loop", ELOOP);
  CHECK_EQUAL(fexecve(1000, argv, argv + 1), -1);
  CHECK_EQUAL(errno == EBADF || errno == ENOENT, 1);
  const size_t big = 16 << 20;
  char* huge = malloc(big + 1);
  memset(huge, 'a', big);
  huge[big] = 0;
  char* many[] = {name, huge, NULL};
  CHECK_EQUAL(execv("/bin/true", many), -1);
  CHECK_EQUAL(errno, E2BIG);
  const char* made[] = {"plain", "text", "script", "empty", "loop"};
  for (int i = 0; i < 5; ++i) CHECK_EQUAL(unlink(made[i]), 0);
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(rmdir(base), 0);
  return succeed();
}
