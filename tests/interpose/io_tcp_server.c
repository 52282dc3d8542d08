// SPDX-License-Identifier: Apache-2.0
// solo: --clients tests/interpose/io_tcp_server.script
// native: no
// A TCP server and its clients: it sees what was admitted. The clients are in the script.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILS(call, error) ((call) < 0 && errno == (error))

static int listener;
static char buffer[4 << 20];

static int unread(int fd) {
  int n = -1;
  ioctl(fd, FIONREAD, &n);
  return n;
}

static int ready(int fd, short events, int ms) {
  struct pollfd p = {fd, events, 0};
  return poll(&p, 1, ms) < 0 ? -1 : p.revents;
}

static void basic(void) {
  struct sockaddr_in a;
  socklen_t n = sizeof a;
  const int c = accept(listener, (struct sockaddr*)&a, &n);
  printf("accepted %d from %s:%d\n", c, inet_ntoa(a.sin_addr), ntohs(a.sin_port));
  n = sizeof a;
  getsockname(c, (struct sockaddr*)&a, &n);
  printf("local %s:%d\n", inet_ntoa(a.sin_addr), ntohs(a.sin_port));
  ssize_t got = recv(c, buffer, 5, MSG_PEEK);
  printf("peek %zd\n", got);
  got = read(c, buffer, 6);
  printf("read %zd [%.*s] unread %d\n", got, (int)got, buffer, unread(c));
  printf("in %x\n", ready(c, POLLIN | POLLOUT | POLLRDHUP, 0));
  got = recv(c, buffer, 10, MSG_WAITALL);
  printf("waitall %zd [%.*s]\n", got, (int)got, buffer);
  while ((got = read(c, buffer, sizeof buffer)) > 0) printf("more %zd\n", got);
  printf("end %zd poll %x\n", got, ready(c, POLLIN | POLLOUT | POLLRDHUP, 0));
  struct iovec v[3] = {{"one ", 4}, {"two ", 4}, {"three\n", 6}};
  got = writev(c, v, 3);
  printf("writev %zd\n", got);
  struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
  got = sendmsg(c, &m, MSG_MORE | MSG_NOSIGNAL);
  printf("sendmsg %zd\n", got);
  shutdown(c, SHUT_WR);
  printf("after shutdown %d\n", FAILS(send(c, "x", 1, MSG_NOSIGNAL), EPIPE));
  close(c);
}

static volatile sig_atomic_t broken;
static void on_pipe(int s) { broken += s == SIGPIPE; }

static void reset(void) {
  const int c = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  while (ready(c, POLLIN, -1) >= 0 && unread(c) == 0) {
  }
  poll(NULL, 0, 5);  // the reset arrives
  ssize_t got = read(c, buffer, 2);
  printf("before the reset %zd poll %x\n", got, ready(c, POLLIN, 0));
  got = read(c, buffer, 20);
  printf("rest %zd\n", got);
  printf("reset %d\n", FAILS(read(c, buffer, 1), ECONNRESET));
  got = read(c, buffer, 1);
  signal(SIGPIPE, on_pipe);
  printf("then %zd and %d\n", got, FAILS(write(c, "x", 1), EPIPE));
  printf("signals %d\n", (int)broken);
  int error = -1;
  socklen_t n = sizeof error;
  getsockopt(c, SOL_SOCKET, SO_ERROR, &error, &n);
  printf("error %d\n", error);
  close(c);
}

static void slow_reader(void) {
  const int c = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  memset(buffer, 'z', sizeof buffer);
  const ssize_t first = write(c, buffer, 3 << 20);
  printf("first %zd full %d\n", first, FAILS(write(c, buffer, 1), EAGAIN));
  int queued = 0;
  ioctl(c, TIOCOUTQ, &queued);
  printf("queued %d out %x\n", queued, ready(c, POLLOUT, 0));
  printf("out again %x\n", ready(c, POLLOUT, -1));
  const ssize_t second = write(c, buffer, 3 << 20);
  printf("second %zd\n", second);
  fcntl(c, F_SETFL, 0);
  const ssize_t third = write(c, buffer, 2 << 20);  // blocks until the client has taken enough
  printf("third %zd\n", third);
  close(c);
}

static void timeouts(void) {
  const int c = accept(listener, NULL, NULL);
  const struct timeval t = {0, 50000};
  setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  ssize_t got = recv(c, buffer, 100, 0);
  printf("some %zd\n", got);
  printf("time-out %d\n", FAILS(recv(c, buffer, 1, 0), EAGAIN));
  close(c);
  const int d = accept(listener, NULL, NULL);  // its input stays unread
  ready(d, POLLIN, -1);
  close(d);
  const int e = accept(listener, NULL, NULL);
  const struct linger l = {1, 0};
  setsockopt(e, SOL_SOCKET, SO_LINGER, &l, sizeof l);
  close(e);
}

static void many(void) {
  const int ep = epoll_create1(0);
  struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e);
  int open_ones = 0, seen = 0;
  do {
    struct epoll_event events[8];
    const int n = epoll_wait(ep, events, 8, -1);
    for (int i = 0; i < n; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        e.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        e.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
        epoll_ctl(ep, EPOLL_CTL_ADD, e.data.fd, &e);
        ++open_ones;
        ++seen;
        continue;
      }
      ssize_t got;
      while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        printf("%d says %.*s events %x\n", fd, (int)got, buffer, events[i].events);
        send(fd, buffer, (size_t)got, 0);
      }
      if (got == 0) {
        close(fd);
        --open_ones;
      }
    }
  } while (open_ones > 0 || seen < 3);
  close(ep);
}

static void inherited(void) {
  const int c = accept(listener, NULL, NULL);
  if (fork() == 0) {
    const ssize_t got = read(c, buffer, sizeof buffer);
    write(c, buffer, (size_t)got);
    _exit(0);
  }
  close(c);
  int status = -1;
  wait(&status);
  printf("child %d\n", status);
  char path[] = "/tmp/io_tcp_server.XXXXXX";
  const int file = mkstemp(path);
  write(file, "file content", 12);
  const int d = accept(listener, NULL, NULL);
  off_t at = 5;
  const ssize_t sent = sendfile(d, file, &at, 100);
  printf("sendfile %zd at %ld\n", sent, (long)at);
  close(d);
  close(file);
  unlink(path);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(8080)};
  bind(listener, (struct sockaddr*)&a, sizeof a);
  listen(listener, 8);
  basic();
  reset();
  slow_reader();
  timeouts();
  many();
  inherited();
  printf("EXIT-SUCCESS\n");
  return 0;
}
