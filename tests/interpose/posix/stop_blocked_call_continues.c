// SPDX-License-Identifier: Apache-2.0
// A waiting call continues to wait after a stop, unless a handler of SIGCONT ends it.
#include <sys/wait.h>

#include "../small.h"

static void on_continue(int signo) { (void)signo; }

static pid_t reader(int from, int other, int with_handler) {
  const pid_t child = fork();
  if (child != 0) return child;
  close(other);
  if (with_handler) handle(SIGCONT, on_continue, 0);
  raise(SIGSTOP);
  char byte = 0;
  const ssize_t n = read(from, &byte, 1);
  _exit(n == 1 ? byte : errno == EINTR ? 100 : 101);
}

int main(void) {
  for (int with_handler = 0; with_handler < 2; ++with_handler) {
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    const pid_t child = reader(ends[0], ends[1], with_handler);
    int status;
    CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
    CHECK_EQUAL(kill(child, SIGCONT), 0);
    CHECK_EQUAL(waitpid(child, &status, WCONTINUED), child);
    // Until one of the stops comes while it reads; a read can complete between two stops.
    for (int i = 0; i < 10 || with_handler; ++i) {
      sleep_ms(1);
      CHECK_EQUAL(kill(child, SIGSTOP), 0);
      CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
      if (WIFEXITED(status)) break;
      CHECK_EQUAL(kill(child, SIGCONT), 0);
      if (!with_handler) CHECK_EQUAL(waitpid(child, &status, WCONTINUED), child);
    }
    if (!with_handler) {
      CHECK_EQUAL(write(ends[1], "C", 1), 1);
      CHECK_EQUAL(waitpid(child, &status, 0), child);
      CHECK_EQUAL(WEXITSTATUS(status), 'C');
    } else {
      CHECK_EQUAL(WEXITSTATUS(status), 100);
    }
    close(ends[0]);
    close(ends[1]);
  }
  return succeed();
}
