// SPDX-License-Identifier: Apache-2.0
// A named semaphore opened by two processes is one.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/wait.h>

#include "../small.h"

int main(int argc, char** argv) {
  const char* name = "/crane_sem_named";
  if (argc > 1) {
    sem_t* s = sem_open(name, 0);
    CHECK(s != SEM_FAILED);
    CHECK_EQUAL(sem_wait(s), 0);
    CHECK_EQUAL(sem_close(s), 0);
    return 0;
  }
  sem_unlink(name);
  CHECK(sem_open(name, 0) == SEM_FAILED);
  CHECK_EQUAL(errno, ENOENT);
  sem_t* s = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  CHECK(s != SEM_FAILED);
  CHECK(sem_open(name, O_CREAT | O_EXCL, 0600, 0) == SEM_FAILED);
  CHECK_EQUAL(errno, EEXIST);
  CHECK(sem_open(name, 0) == s);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "x", (char*)NULL);
    _exit(1);
  }
  sleep_ms(10);
  CHECK_EQUAL(sem_post(s), 0);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(sem_unlink(name), 0);
  CHECK_EQUAL(sem_unlink(name), -1);
  CHECK_EQUAL(errno, ENOENT);
  return succeed();
}
