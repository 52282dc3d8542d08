// SPDX-License-Identifier: Apache-2.0
// TCP sockets without a client: addresses, options, listening, refusals.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define FAILS(call, error) ((call) < 0 && errno == (error))

static int option(int s, int level, int name) {
  int v = -1;
  socklen_t n = sizeof v;
  return getsockopt(s, level, name, &v, &n) == 0 ? v : -errno;
}

static void options(int s) {
  const int on = 1;
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  printf("options %d %d %d\n", option(s, SOL_SOCKET, SO_REUSEADDR) != 0,
         option(s, IPPROTO_TCP, TCP_NODELAY) != 0, option(s, SOL_SOCKET, SO_KEEPALIVE) != 0);
  printf("kind %d %d %d\n", option(s, SOL_SOCKET, SO_TYPE) == SOCK_STREAM,
         option(s, SOL_SOCKET, SO_DOMAIN) == AF_INET, option(s, SOL_SOCKET, SO_ERROR));
  struct linger l = {1, 7};
  setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof l);
  memset(&l, 0, sizeof l);
  socklen_t n = sizeof l;
  getsockopt(s, SOL_SOCKET, SO_LINGER, &l, &n);
  printf("linger %d %d\n", l.l_onoff, l.l_linger);
  struct timeval t = {2, 500000};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  memset(&t, 0, sizeof t);
  n = sizeof t;
  getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, &n);
  printf("time-out %ld.%06ld\n", (long)t.tv_sec, (long)t.tv_usec);
  t = (struct timeval){0, 0};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  printf("unknown %d\n", setsockopt(s, 12345, 1, &on, sizeof on) < 0);
}

static void listening(void) {
  const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct stat st;
  fstat(s, &st);
  printf("socket %d\n", S_ISSOCK(st.st_mode));
  options(s);
  struct sockaddr_in a, b;
  memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof b;
  const int bound = bind(s, (struct sockaddr*)&a, sizeof a);
  printf("bind %d twice %d\n", bound, FAILS(bind(s, (struct sockaddr*)&a, sizeof a), EINVAL));
  getsockname(s, (struct sockaddr*)&b, &n);
  printf("name %d %d %d\n", b.sin_family == AF_INET, b.sin_port != 0, (int)n);
  const int before = option(s, SOL_SOCKET, SO_ACCEPTCONN);
  printf("listening %d %d\n", before, listen(s, 16));
  printf("listening %d\n", option(s, SOL_SOCKET, SO_ACCEPTCONN));
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  printf("in use %d\n", bind(other, (struct sockaddr*)&b, sizeof b) < 0 && errno == EADDRINUSE);
  struct pollfd f = {s, POLLIN, 0};
  printf("poll %d\n", poll(&f, 1, 10));
  const int on = 1;
  ioctl(s, FIONBIO, &on);
  printf("nobody %d\n", FAILS(accept(s, NULL, NULL), EAGAIN));
  printf("flags %d\n", (fcntl(s, F_GETFL) & O_NONBLOCK) != 0);
  char c;
  printf("read %d\n", FAILS(read(s, &c, 1), ENOTCONN));
  printf("peer %d\n", FAILS(getpeername(s, (struct sockaddr*)&b, &n), ENOTCONN));
  printf("seek %d\n", FAILS(lseek(s, 0, SEEK_SET), ESPIPE));
  close(s);
  close(other);
}

static void* stop_it(void* s) {
  usleep(2000);
  shutdown(*(int*)s, SHUT_RDWR);
  return NULL;
}

// This is how servers end a thread that waits in accept.
static void stopped(void) {
  int s = socket(AF_INET, SOCK_STREAM, 0);
  listen(s, 4);
  pthread_t t;
  pthread_create(&t, NULL, stop_it, &s);
  printf("stopped %d\n", FAILS(accept(s, NULL, NULL), EINVAL));
  pthread_join(t, NULL);
  close(s);
}

static void both_families(void) {
  const int four = socket(AF_INET, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0);
  if (six < 0) {
    printf("both 1 0 0\n");
    return;
  }
  const int on = 1;
  setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  struct sockaddr_in a;
  struct sockaddr_in6 b;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  a.sin_family = AF_INET;
  socklen_t n = sizeof a;
  bind(four, (struct sockaddr*)&a, sizeof a);
  const int first = listen(four, 1);
  getsockname(four, (struct sockaddr*)&a, &n);
  b.sin6_family = AF_INET6;
  b.sin6_port = a.sin_port;
  const int bound = bind(six, (struct sockaddr*)&b, sizeof b);
  printf("both %d %d %d\n", first == 0, bound, listen(six, 1));
  close(four);
  close(six);
}

int main(void) {
  listening();
  stopped();
  both_families();
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a;
  memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_port = htons(1);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  printf("connect %d\n", FAILS(connect(s, (struct sockaddr*)&a, sizeof a), ECONNREFUSED));
  printf("send %d\n", send(s, "x", 1, MSG_NOSIGNAL) < 0);
  close(s);
  printf("EXIT-SUCCESS\n");
  return 0;
}
