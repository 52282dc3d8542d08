// SPDX-License-Identifier: Apache-2.0
// says: open: .* waits until a process of the server opens this FIFO
// Opening a FIFO blocks until the other side is opened, whichever comes first.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../child.h"

static char path[80];
static volatile int opened;
static void* reader(void* x) {
  const int fd = open(path, O_RDONLY);
  char b[8];
  CHECK_EQUAL(opened, 1);
  CHECK_EQUAL(read(fd, b, sizeof b), 3);
  CHECK_EQUAL(read(fd, b, sizeof b), 0);
  close(fd);
  return x;
}
static void* writer(void* x) {
  const int fd = open(path, O_WRONLY);
  CHECK_EQUAL(opened, 1);
  CHECK_EQUAL(write(fd, "abc", 3), 3);
  close(fd);
  return x;
}

int main(void) {
  snprintf(path, sizeof path, "/tmp/%s-%d", program_invocation_short_name, getpid());
  unlink(path);  // left by a killed run
  CHECK_EQUAL(mkfifo(path, 0600), 0);
  pthread_t t = start(reader, NULL);
  sleep_ms(10);
  opened = 1;
  writer(NULL);
  join(t);
  opened = 0;
  t = start(writer, NULL);
  sleep_ms(10);
  opened = 1;
  reader(NULL);
  join(t);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
