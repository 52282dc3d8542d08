// SPDX-License-Identifier: Apache-2.0
// solo: --sockets-in /tmp --clients tests/interpose/io_fifo_outbound.script
// native: no
// A server reads a FIFO of the host, which other processes write to: it reads what was admitted,
// and the descriptor is that of a FIFO. A FIFO that the server has made is its own.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outbound.h"

#define FIFO "/tmp/crane-solo-fifo"

static void show_read(const char* what, int fd) {
  char bytes[64];
  const ssize_t n = read(fd, bytes, sizeof bytes);
  printf("  %s: %s", what, outcome(n));
  if (n >= 0) printf(" %d [%.*s]", (int)n, (int)n, bytes);
  printf("\n");
}

static int ready_to_read(int fd, int ms) {
  struct pollfd p = {fd, POLLIN | POLLRDHUP, 0};
  return poll(&p, 1, ms) < 0 ? -1 : p.revents;
}

static void show_kind(int fd) {
  struct stat s;
  fstat(fd, &s);
  printf("  a FIFO: %d, for reading: %d\n", S_ISFIFO(s.st_mode) != 0,
         (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
  printf("  seek %s, write %s, recv %s\n", outcome(lseek(fd, 0, SEEK_SET)),
         outcome(write(fd, "x", 1)), outcome(recv(fd, &s, 1, 0)));
}

static void blocking(void) {
  const int fd = open(FIFO, O_RDONLY | O_CLOEXEC);
  int unread = -1;
  printf("blocking: %s, close on exec %d\n", outcome(fd), fcntl(fd, F_GETFD));
  show_kind(fd);
  printf("  poll %x", (unsigned)ready_to_read(fd, -1));
  printf(", unread %s", outcome(ioctl(fd, FIONREAD, &unread)));
  printf(" %d\n", unread);
  show_read("line", fd);
  show_read("behind a pause", fd);
  show_read("end", fd);
  printf("  poll %x\n", (unsigned)ready_to_read(fd, -1));
  close(fd);
}

static void nonblocking(void) {
  const int fd = open(FIFO, O_RDONLY | O_NONBLOCK);
  printf("nonblocking: %s, poll %x\n", outcome(fd), (unsigned)ready_to_read(fd, 0));
  show_read("nothing yet", fd);
  printf("  poll %x\n", (unsigned)ready_to_read(fd, -1));
  show_read("a byte", fd);
  printf("  poll %x\n", (unsigned)ready_to_read(fd, -1));
  show_read("its leader has gone", fd);
  close(fd);
}

static void by_a_stream(void) {
  char line[64] = "";
  FILE* const f = fopen(FIFO, "r");
  printf("a stream: %d", f != NULL && fgets(line, sizeof line, f) != NULL);
  printf(" %s", line);
  printf("  then %d\n", fgets(line, sizeof line, f) != NULL);
  fclose(f);
}

static void own(void) {
  static const char path[] = "/tmp/crane-solo-own-fifo";
  char bytes[4];
  unlink(path);
  printf("of the server: %s", outcome(mkfifo(path, 0600)));
  const int reads = open(path, O_RDONLY | O_NONBLOCK);
  const int writes = open(path, O_WRONLY);
  printf(", write %d", (int)write(writes, "own", 3));
  printf(", read %d\n", (int)read(reads, bytes, sizeof bytes));
  unlink(path);
}

int main(void) {
  blocking();
  nonblocking();
  by_a_stream();
  own();
  printf("not allowed: %s\n", outcome(open(FIFO, O_RDONLY)));
  return 0;
}
