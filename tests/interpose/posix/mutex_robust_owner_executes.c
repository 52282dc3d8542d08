// SPDX-License-Identifier: Apache-2.0
// A process executes another program with a shared robust mutex held while another waits for it:
// EOWNERDEAD; an exec that fails keeps it.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  pthread_mutex_t* m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t a;
  int fds[2];
  char c;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(m, &a);
  CHECK_EQUAL(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(m);
    CHECK_EQUAL(write(fds[1], "x", 1), 1);
    sleep_ms(5);
    CHECK_EQUAL(execl("/not/there", "none", NULL), -1);
    sleep_ms(5);
    CHECK_EQUAL(pthread_mutex_trylock(m), EBUSY);
    execl("/bin/cat", "cat", NULL);
    _exit(1);
  }
  CHECK_EQUAL(read(fds[0], &c, 1), 1);
  CHECK_EQUAL(pthread_mutex_lock(m), EOWNERDEAD);
  CHECK_EQUAL(pthread_mutex_consistent(m), 0);
  CHECK_EQUAL(pthread_mutex_unlock(m), 0);
  CHECK_EQUAL(pthread_mutex_lock(m), 0);
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  return succeed();
}
