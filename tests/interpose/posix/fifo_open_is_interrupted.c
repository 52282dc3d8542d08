// SPDX-License-Identifier: Apache-2.0
// A handler without SA_RESTART ends the wait for the other side with EINTR.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

static void note(int signo) { (void)signo; }

int main(void) {
  char path[80];
  snprintf(path, sizeof path, "/tmp/%s-%d", program_invocation_short_name, getpid());
  unlink(path);  // left by a killed run
  CHECK_EQUAL(mkfifo(path, 0600), 0);
  handle(SIGALRM, note, 0);
  const int lowest = dup(0);
  close(lowest);
  const int modes[] = {O_RDONLY, O_WRONLY};
  for (int i = 0; i < 2; ++i) {
    ualarm(20000, 0);
    CHECK_EQUAL(open(path, modes[i]), -1);
    CHECK_EQUAL(errno, EINTR);
  }
  CHECK_EQUAL(dup(0), lowest);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
