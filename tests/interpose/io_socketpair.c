// SPDX-License-Identifier: Apache-2.0
// Socket pairs: both directions, shutdown, peek, waitall, messages (seqpacket), blocking senders.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILS(call, error) ((call) < 0 && errno == (error))

static void both_ways(void) {
  int s[2];
  char b[64];
  socketpair(AF_UNIX, SOCK_STREAM, 0, s);
  send(s[0], "ping", 4, 0);
  write(s[1], "pong!", 5);
  printf("peek %zd\n", recv(s[1], b, 2, MSG_PEEK));
  ssize_t got = recv(s[1], b, sizeof b, 0);
  printf("read %zd %.4s\n", got, b);
  got = read(s[0], b, sizeof b);
  printf("read %zd %.5s\n", got, b);
  printf("dontwait %d\n", FAILS(recv(s[0], b, 1, MSG_DONTWAIT), EAGAIN));
  shutdown(s[0], SHUT_WR);
  printf("eof %zd\n", recv(s[1], b, sizeof b, 0));
  printf("epipe %d\n", FAILS(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE));
  send(s[1], "still", 5, 0);
  printf("half %zd\n", recv(s[0], b, sizeof b, 0));
  struct pollfd f = {s[1], POLLIN | POLLRDHUP | POLLOUT, 0};
  const int ready = poll(&f, 1, 0);
  printf("poll %d %x\n", ready, f.revents);
  int type = 0;
  socklen_t n = sizeof type;
  getsockopt(s[0], SOL_SOCKET, SO_TYPE, &type, &n);
  printf("type %d\n", type == SOCK_STREAM);
  close(s[0]);
  printf("gone %d\n", FAILS(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE));
  close(s[1]);
}

static void messages(void) {
  int s[2];
  char b[64];
  socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s);
  send(s[0], "one", 3, 0);
  send(s[0], "second", 6, 0);
  send(s[0], "3", 1, 0);
  printf("message %zd\n", recv(s[1], b, sizeof b, 0));
  printf("cut %zd\n", recv(s[1], b, 2, 0));
  printf("message %zd\n", recv(s[1], b, sizeof b, 0));
  printf("none %d\n", FAILS(recv(s[1], b, sizeof b, MSG_DONTWAIT), EAGAIN));
  close(s[0]);
  printf("eof %zd\n", recv(s[1], b, sizeof b, 0));
  close(s[1]);
}

// 2000 small messages are more than the kernel's accounting accepts at once.
static void many(void) {
  int s[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, s);
  const pid_t child = fork();
  if (child == 0) {
    close(s[0]);
    for (int i = 0; i < 2000; ++i) {
      if (send(s[1], "0123456789", 10, 0) != 10) _exit(1);
    }
    _exit(0);
  }
  close(s[1]);
  char b[4096];
  size_t total = 0;
  printf("waitall %zd\n", recv(s[0], b, 1000, MSG_WAITALL));
  for (ssize_t n; (n = recv(s[0], b, sizeof b, 0)) > 0;) total += (size_t)n;
  int status = -1;
  waitpid(child, &status, 0);
  printf("rest %zu status %d\n", total, status);
  close(s[0]);
}

static void echo(void) {
  int s[2];
  char b[32];
  socketpair(AF_UNIX, SOCK_STREAM, 0, s);
  const pid_t child = fork();
  if (child == 0) {
    close(s[0]);
    for (ssize_t n; (n = read(s[1], b, sizeof b)) > 0;) write(s[1], b, (size_t)n);
    _exit(3);
  }
  close(s[1]);
  int sum = 0;
  for (int i = 0; i < 200; ++i) {
    write(s[0], &i, sizeof i);
    int back = -1;
    read(s[0], &back, sizeof back);
    sum += back;
  }
  close(s[0]);
  int status = 0;
  waitpid(child, &status, 0);
  printf("echo %d %d\n", sum, WEXITSTATUS(status));
}

int main(void) {
  both_ways();
  messages();
  many();
  echo();
  printf("EXIT-SUCCESS\n");
  return 0;
}
