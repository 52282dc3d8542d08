// SPDX-License-Identifier: Apache-2.0
// A shell's command reads and writes FIFOs by redirection.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../child.h"

int main(void) {
  char to[80], from[80], command[240], b[16];
  snprintf(to, sizeof to, "/tmp/%s-to-%d", program_invocation_short_name, getpid());
  snprintf(from, sizeof from, "/tmp/%s-from-%d", program_invocation_short_name, getpid());
  unlink(to);  // left by a killed run
  CHECK_EQUAL(mkfifo(to, 0600), 0);
  unlink(from);  // left by a killed run
  CHECK_EQUAL(mkfifo(from, 0600), 0);
  snprintf(command, sizeof command, "while read -r w; do echo \"<$w>\"; done < %s > %s", to, from);
  const pid_t p = fork();
  CHECK(p >= 0);
  if (p == 0) {
    execl("/bin/sh", "sh", "-c", command, (char*)NULL);
    _exit(127);
  }
  const int out = open(to, O_WRONLY), in = open(from, O_RDONLY);
  CHECK(out >= 0 && in >= 0);
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(write(out, "word\n", 5), 5);
    CHECK_EQUAL(read(in, b, sizeof b), 7);
    CHECK_EQUAL(memcmp(b, "<word>\n", 7), 0);
  }
  close(out);
  CHECK_EQUAL(read(in, b, sizeof b), 0);
  CHECK_EQUAL(status_of(p), 0);
  CHECK_EQUAL(unlink(to), 0);
  CHECK_EQUAL(unlink(from), 0);
  return succeed();
}
