// SPDX-License-Identifier: Apache-2.0
// native: no
// The kernel gives a program with the setuid or setgid bit random addresses, whatever its parent
// has. Replicas need equal ones: such a program runs at the addresses of any other program, with
// its own name and arguments.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static int is_own_name(const char* wanted) {
  char name[16] = "";
  CHECK_EQUAL(prctl(PR_GET_NAME, name), 0);
  return strcmp(name, wanted) == 0;
}

static int run_copy(int count, char** words) {
  CHECK_EQUAL(count, 3);
  CHECK(strcmp(words[0], "a name") == 0 && strcmp(words[1], "copy") == 0);
  CHECK(strcmp(words[2], "") == 0);
  CHECK((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0);
  CHECK(is_own_name("setuid_copy"));
  CHECK(strcmp(getenv("KEPT"), "kept") == 0);
  return 0;
}

static void copy_program(const char* path) {
  struct stat s;
  const int from = open("/proc/self/exe", O_RDONLY);
  const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
  CHECK(from >= 0 && to >= 0 && fstat(from, &s) == 0);
  CHECK_EQUAL(sendfile(to, from, NULL, (size_t)s.st_size), s.st_size);
  CHECK_EQUAL(fchmod(to, 04755), 0);
  CHECK_EQUAL(close(to), 0);
}

int main(int count, char** words) {
  if (count > 1) return run_copy(count, words);
  char directory[] = "/tmp/crane-setuid-XXXXXX", path[64];
  CHECK(mkdtemp(directory) != NULL);
  snprintf(path, sizeof path, "%s/setuid_copy", directory);
  copy_program(path);
  const pid_t child = fork();
  if (child == 0) {
    char* const given[] = {"a name", "copy", "", NULL};
    char* const kept[] = {"KEPT=kept", NULL};
    execve(path, given, kept);
    _exit(1);
  }
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(unlink(path), 0);
  CHECK_EQUAL(rmdir(directory), 0);
  return succeed();
}
