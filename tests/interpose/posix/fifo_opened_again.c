// SPDX-License-Identifier: Apache-2.0
// A FIFO remains usable when its reader leaves and returns; in between a writer gets EPIPE.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

int main(void) {
  char path[80], b[8];
  handle(SIGPIPE, SIG_IGN, 0);
  snprintf(path, sizeof path, "/tmp/%s-%d", program_invocation_short_name, getpid());
  unlink(path);  // left by a killed run
  CHECK_EQUAL(mkfifo(path, 0600), 0);
  int in = open(path, O_RDONLY | O_NONBLOCK);
  const int out = open(path, O_WRONLY);
  CHECK_EQUAL(write(out, "one", 3), 3);
  close(in);
  CHECK_EQUAL(write(out, "two", 3), -1);
  CHECK_EQUAL(errno, EPIPE);
  in = open(path, O_RDONLY);
  CHECK(in >= 0);
  CHECK_EQUAL(write(out, "three", 5), 5);
  CHECK_EQUAL(read(in, b, sizeof b), 8);
  CHECK_EQUAL(memcmp(b, "onethree", 8), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
