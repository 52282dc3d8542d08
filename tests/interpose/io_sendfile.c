// SPDX-License-Identifier: Apache-2.0
// solo: --clients tests/interpose/io_sendfile.script
// native: no
// Files sent to clients: every byte once and in order, whenever the client reads.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE (3 << 20)

static int listener, file;

static const char* describe_result(ssize_t n) {
  static char text[32];
  if (n < 0) return strerrorname_np(errno);
  snprintf(text, sizeof text, "%zd", n);
  return text;
}

static void make_file(void) {
  char path[] = "/tmp/io_sendfile.XXXXXX";
  file = mkstemp(path);
  unlink(path);
  unsigned char* const bytes = malloc(SIZE);
  for (int i = 0; i < SIZE; ++i) bytes[i] = (unsigned char)((i * 7 + i / 65536) % 251);
  printf("file %s\n", describe_result(write(file, bytes, SIZE)));
  free(bytes);
}

static int wait_for(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  return poll(&p, 1, -1) < 0 ? -1 : p.revents;
}

static void slow_reader(void) {
  const int c = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  off_t at = 0;
  printf("header %s\n", describe_result(write(c, "header", 6)));
  printf("first %s\n", describe_result(sendfile(c, file, &at, SIZE)));
  printf("full %s\n", describe_result(sendfile(c, file, &at, SIZE)));
  off_t end = SIZE;
  printf("full, at the end %s\n", describe_result(sendfile(c, file, &end, 1)));
  printf("at %ld\n", (long)at);
  printf("out %x\n", wait_for(c, POLLOUT));
  printf("second %s\n", describe_result(sendfile(c, file, &at, 70000)));
  fcntl(c, F_SETFL, 0);
  lseek(file, at, SEEK_SET);
  printf("third %s\n",
         describe_result(sendfile(c, file, NULL, SIZE)));  // blocks, and reaches the end
  printf("position %ld\n", (long)lseek(file, 0, SEEK_CUR));
  printf("end %s\n", describe_result(sendfile(c, file, NULL, SIZE)));
  printf("nothing %s\n", describe_result(sendfile(c, file, NULL, 0)));
  off_t before = -1;
  printf("before the start %s\n", describe_result(sendfile(c, file, &before, 1)));
  const int closed = open("/dev/null", O_WRONLY);
  at = 0;
  printf("not readable %s\n", describe_result(sendfile(c, closed, &at, 1)));
  close(closed);
  close(c);
}

static volatile sig_atomic_t broken;
static void on_pipe(int s) { broken += s == SIGPIPE; }

static void reset(void) {
  signal(SIGPIPE, on_pipe);
  const int c = accept(listener, NULL, NULL);
  wait_for(c, POLLHUP);
  char byte;
  printf("reset %s\n", describe_result(read(c, &byte, 1)));
  off_t at = SIZE;
  printf("at the end %s\n", describe_result(sendfile(c, file, &at, 1)));
  printf("signals %d\n", (int)broken);
  at = 0;
  printf("before it %s\n", describe_result(sendfile(c, file, &at, 1)));
  printf("signals %d\n", (int)broken);
  printf("at %ld\n", (long)at);
  close(c);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  make_file();
  listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(8080)};
  bind(listener, (struct sockaddr*)&a, sizeof a);
  listen(listener, 8);
  slow_reader();
  reset();
  printf("EXIT-SUCCESS\n");
  return 0;
}
