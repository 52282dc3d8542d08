// SPDX-License-Identifier: Apache-2.0
// While a process is stopped none of its threads runs, and all continue afterwards.
#include <poll.h>
#include <sys/wait.h>

#include "../small.h"

enum { kThreads = 4 };
static int to_child[2], to_parent[2];

static void* echo(void* unused) {
  (void)unused;
  char byte;
  while (read(to_child[0], &byte, 1) == 1) {
    if (write(to_parent[1], &byte, 1) != 1) _exit(3);
  }
  return NULL;
}

int main(void) {
  CHECK_EQUAL(pipe(to_child), 0);
  CHECK_EQUAL(pipe(to_parent), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(to_child[1]);
    close(to_parent[0]);
    pthread_t t[kThreads];
    for (int i = 0; i < kThreads; ++i) t[i] = start(echo, NULL);
    for (int i = 0; i < kThreads; ++i) join(t[i]);
    _exit(0);
  }
  close(to_child[0]);
  close(to_parent[1]);
  char bytes[8] = "abcdefg";
  CHECK_EQUAL(write(to_child[1], bytes, 1), 1);
  CHECK_EQUAL(read(to_parent[0], bytes, 1), 1);
  int status;
  CHECK_EQUAL(kill(child, SIGSTOP), 0);
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
  CHECK_EQUAL(write(to_child[1], bytes, 8), 8);
  struct timespec pause = timespec_of(50 * MS);
  CHECK_EQUAL(nanosleep(&pause, NULL), 0);
  // No thread has read them.
  struct pollfd p = {to_parent[0], POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  CHECK_EQUAL(waitpid(child, &status, WNOHANG | WUNTRACED), 0);
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  for (int n = 0; n < 8;) {
    const ssize_t got = read(to_parent[0], bytes, sizeof bytes);
    CHECK(got > 0);
    n += (int)got;
  }
  close(to_child[1]);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  return succeed();
}
