// SPDX-License-Identifier: Apache-2.0
// exec, posix_spawn, system and popen start programs that run under the same rules; their statuses
// and outputs arrive.
#define _GNU_SOURCE
#include <spawn.h>
#include <sys/wait.h>

#include "../small.h"

extern char** environ;

int main(int argc, char** argv) {
  if (argc > 1) {
    join(start((void* (*)(void*))strdup, argv[1]));
    return atoi(argv[1]);
  }
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "3", (char*)NULL);
    _exit(1);
  }
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 3);
  char* const words[] = {argv[0], "4", NULL};
  CHECK_EQUAL(posix_spawn(&child, argv[0], NULL, NULL, words, environ), 0);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 4);
  CHECK_EQUAL(WEXITSTATUS(system("exit 6")), 6);
  char line[32] = "";
  FILE* pipe = popen("echo from a child", "r");
  CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL);
  CHECK_EQUAL(pclose(pipe), 0);
  printf("%s", line);
  return succeed();
}
