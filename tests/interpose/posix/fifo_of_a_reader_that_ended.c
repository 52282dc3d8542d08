// SPDX-License-Identifier: Apache-2.0
// When the end of a FIFO's only reader is known, there is no reader; when its writers have closed
// too, it is empty. While there is a writer, unread data stays.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "../child.h"

static char path[80];
static int open_end, told_end;

static int reads_nothing(int x) {
  enum { kBytes = 64 << 20 };  // so that the kernel closes the descriptors late
  char* memory = malloc(kBytes);
  CHECK(memory != NULL);
  for (long i = 0; i < kBytes; i += 4096) ((volatile char*)memory)[i] = 1;
  CHECK(open(path, O_RDONLY | O_NONBLOCK) >= 0);
  CHECK_EQUAL(write(open_end, "o", 1), 1);
  char b;
  CHECK_EQUAL(read(told_end, &b, 1), 1);
  return x;
}

static int readable(int fd) {
  int n = -1;
  CHECK_EQUAL(ioctl(fd, FIONREAD, &n), 0);
  return n;
}

int main(void) {
  int opened[2], told[2], signo = 0;
  char b[8];
  snprintf(path, sizeof path, "/tmp/%s-%d", program_invocation_short_name, getpid());
  unlink(path);  // left by a killed run
  CHECK_EQUAL(mkfifo(path, 0600), 0);
  CHECK_EQUAL(pipe(opened), 0);
  CHECK_EQUAL(pipe(told), 0);
  open_end = opened[1];
  told_end = told[0];
  block_signal(SIGCHLD);
  const sigset_t end = set_of_signal(SIGCHLD);
  const pid_t p = start_process(reads_nothing, 0);
  CHECK_EQUAL(read(opened[0], b, 1), 1);
  int out = open(path, O_WRONLY | O_NONBLOCK);
  CHECK(out >= 0);
  CHECK_EQUAL(write(out, "abcde", 5), 5);
  close(out);
  CHECK_EQUAL(write(told[1], "t", 1), 1);
  CHECK_EQUAL(sigwait(&end, &signo), 0);
  CHECK_EQUAL(open(path, O_WRONLY | O_NONBLOCK), -1);
  CHECK_EQUAL(errno, ENXIO);
  int in = open(path, O_RDONLY | O_NONBLOCK);
  CHECK_EQUAL(readable(in), 0);
  CHECK_EQUAL(read(in, b, sizeof b), 0);
  CHECK_EQUAL(status_of(p), 0);
  out = open(path, O_WRONLY | O_NONBLOCK);
  CHECK_EQUAL(write(out, "fghi", 4), 4);
  CHECK_EQUAL(read(in, b, 1), 1);
  close(in);
  CHECK_EQUAL(write(out, "x", 0), 0);
  in = open(path, O_RDONLY | O_NONBLOCK);
  CHECK_EQUAL(readable(in), 3);
  CHECK_EQUAL(write(out, "j", 1), 1);
  CHECK_EQUAL(read(in, b, sizeof b), 4);
  CHECK(memcmp(b, "ghij", 4) == 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
