// SPDX-License-Identifier: Apache-2.0
// Pipes: end of file, broken pipe, non-blocking ends, FIONREAD, partial writes, blocking writers.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILS(call, error) ((call) < 0 && errno == (error))

static volatile sig_atomic_t pipes_broken;
static void on_pipe(int signo) { pipes_broken += signo == SIGPIPE; }

static int unread(int fd) {
  int n = -1;
  ioctl(fd, FIONREAD, &n);
  return n;
}

static void plain(void) {
  int p[2];
  char b[64];
  pipe(p);
  write(p[1], "hello ", 6);
  struct iovec v[2] = {{"wor", 3}, {"ld", 2}};
  ssize_t n = writev(p[1], v, 2);
  printf("writev %zd unread %d\n", n, unread(p[0]));
  n = read(p[0], b, 4);
  printf("read %zd %.4s unread %d\n", n, b, unread(p[0]));
  char c[2], d[32];
  struct iovec r[2] = {{c, 2}, {d, 32}};
  n = readv(p[0], r, 2);
  printf("readv %zd %.2s|%.5s\n", n, c, d);
  close(p[1]);
  printf("eof %zd\n", read(p[0], b, sizeof b));
  struct pollfd f = {p[0], POLLIN, 0};
  const int ready = poll(&f, 1, 0);
  printf("poll %d %x\n", ready, f.revents);
  close(p[0]);
  printf("closed %d\n", FAILS(read(p[0], b, 1), EBADF));
}

static void nonblocking(void) {
  int p[2];
  static char big[100000];
  pipe2(p, O_NONBLOCK | O_CLOEXEC);
  printf("empty %d\n", FAILS(read(p[0], big, 10), EAGAIN));
  printf("big %zd\n", write(p[1], big, sizeof big));
  printf("full %d\n", FAILS(write(p[1], big, 1), EAGAIN));
  struct pollfd f = {p[1], POLLOUT, 0};
  printf("poll full %d\n", poll(&f, 1, 0));
  size_t total = 0;
  for (ssize_t n; (n = read(p[0], big, sizeof big)) > 0;) total += (size_t)n;
  int ready = poll(&f, 1, 0);
  printf("drained %zu poll %d %x\n", total, ready, f.revents);
  printf("flags %d %d\n", (fcntl(p[0], F_GETFL) & O_NONBLOCK) != 0,
         (fcntl(p[0], F_GETFD) & FD_CLOEXEC) != 0);
  fcntl(p[0], F_SETFL, 0);
  printf("flags %d\n", (fcntl(p[0], F_GETFL) & O_NONBLOCK) != 0);
  close(p[0]);
  signal(SIGPIPE, on_pipe);
  const int broken = FAILS(write(p[1], "x", 1), EPIPE);
  printf("broken %d signals %d\n", broken, (int)pipes_broken);
  f.events = POLLOUT;
  ready = poll(&f, 1, 0);
  printf("poll broken %d %x\n", ready, f.revents & POLLERR);
  close(p[1]);
}

// A writer that fills the pipe many times; a reader that takes odd amounts.
static void transfer(void) {
  int p[2];
  pipe(p);
  if (fork() == 0) {
    close(p[0]);
    static unsigned char out[5000];
    unsigned x = 1;
    for (int i = 0; i < 100; ++i) {
      for (size_t k = 0; k < sizeof out; ++k)
        out[k] = (unsigned char)((x = x * 1103515245 + 12345) >> 16);
      for (size_t done = 0; done < sizeof out;) {
        const ssize_t n = write(p[1], out + done, sizeof out - done);
        if (n <= 0) _exit(1);
        done += (size_t)n;
      }
    }
    _exit(7);
  }
  close(p[1]);
  unsigned char in[777];
  unsigned x = 1, wrong = 0;
  size_t total = 0;
  for (ssize_t n; (n = read(p[0], in, sizeof in)) > 0; total += (size_t)n) {
    for (ssize_t k = 0; k < n; ++k)
      wrong += in[k] != (unsigned char)((x = x * 1103515245 + 12345) >> 16);
  }
  int status = 0;
  wait(&status);
  printf("transfer %zu wrong %u status %d\n", total, wrong, WEXITSTATUS(status));
  close(p[0]);
}

// Many small writes: half-filled pages must not block a writer.
static void many_small(void) {
  int p[2];
  static char block[2100];
  pipe(p);
  int writes = 0;
  fcntl(p[1], F_SETFL, O_NONBLOCK);
  while (write(p[1], block, sizeof block) > 0) ++writes;
  printf("small writes fit: %d\n", writes > 0);
  size_t total = 0;
  fcntl(p[0], F_SETFL, O_NONBLOCK);
  for (ssize_t n; (n = read(p[0], block, sizeof block)) > 0;) total += (size_t)n;
  printf("all rejoined: %d\n", total == (size_t)writes * sizeof block);
  close(p[0]);
  close(p[1]);
}

int main(void) {
  plain();
  nonblocking();
  transfer();
  many_small();
  printf("EXIT-SUCCESS\n");
  return 0;
}
