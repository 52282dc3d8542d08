// SPDX-License-Identifier: Apache-2.0
// Linux's errors for calls that do not fit the file's kind or state.
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "../small.h"

#define REFUSED(call, error)   \
  do {                         \
    errno = 0;                 \
    CHECK_EQUAL(call, -1);     \
    CHECK_EQUAL(errno, error); \
  } while (0)

static struct sockaddr_in at = {AF_INET, 0, {0}, ""};
static struct sockaddr* const name = (struct sockaddr*)&at;
static socklen_t size = sizeof at;
static char byte = 'x';

static int type_of(int fd) {
  struct stat s;
  CHECK_EQUAL(fstat(fd, &s), 0);
  return s.st_mode & S_IFMT;
}

static int unread(int fd) {
  int n = -1;
  CHECK_EQUAL(ioctl(fd, FIONREAD, &n), 0);
  return n;
}

static void no_socket(int fd) {
  int one = 1;
  socklen_t n = sizeof one;
  REFUSED(bind(fd, name, size), ENOTSOCK);
  REFUSED(listen(fd, 1), ENOTSOCK);
  REFUSED(accept(fd, NULL, NULL), ENOTSOCK);
  REFUSED(connect(fd, name, size), ENOTSOCK);
  REFUSED(shutdown(fd, SHUT_RDWR), ENOTSOCK);
  REFUSED(getsockname(fd, name, &size), ENOTSOCK);
  REFUSED(getpeername(fd, name, &size), ENOTSOCK);
  REFUSED(getsockopt(fd, SOL_SOCKET, SO_TYPE, &one, &n), ENOTSOCK);
  REFUSED(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, n), ENOTSOCK);
  REFUSED(recv(fd, &byte, 1, MSG_DONTWAIT), ENOTSOCK);
  REFUSED(send(fd, &byte, 1, MSG_DONTWAIT), ENOTSOCK);
}

static void tcp(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(type_of(fd), S_IFSOCK);
  REFUSED(accept(fd, NULL, NULL), EINVAL);
  REFUSED(getpeername(fd, name, &size), ENOTCONN);
  REFUSED(read(fd, &byte, 1), ENOTCONN);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK_EQUAL(bind(fd, name, size), 0);
  CHECK_EQUAL(listen(fd, 3), 0);
  CHECK_EQUAL(getsockname(fd, name, &size), 0);
  REFUSED(bind(fd, name, size), EINVAL);
  REFUSED(connect(fd, name, size), EISCONN);
  REFUSED(read(fd, &byte, 1), ENOTCONN);
  const int to = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(to, name, size), 0);
  REFUSED(connect(to, name, size), EISCONN);
  REFUSED(listen(to, 1), EINVAL);
  REFUSED(accept(to, NULL, NULL), EINVAL);
  const int from = accept(fd, NULL, NULL);
  CHECK_EQUAL(write(from, "abc", 3), 3);
  CHECK_EQUAL(recv(to, &byte, 1, MSG_PEEK), 1);
  CHECK_EQUAL(unread(to), 3);
  close(from);
  close(to);
  close(fd);
}

static void udp(void) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(type_of(fd), S_IFSOCK);
  REFUSED(listen(fd, 1), EOPNOTSUPP);
  REFUSED(accept(fd, NULL, NULL), EOPNOTSUPP);
  REFUSED(shutdown(fd, SHUT_WR), ENOTCONN);
  close(fd);
}

static void unix_streams(void) {
  int pair[2];
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(type_of(fd), S_IFSOCK);
  REFUSED(accept(fd, NULL, NULL), EINVAL);
  REFUSED(read(fd, &byte, 1), EINVAL);
  REFUSED(send(fd, &byte, 1, MSG_NOSIGNAL), ENOTCONN);
  close(fd);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const struct {
    sa_family_t family;
    char path[16];
  } own = {AF_UNIX, "\0file_calls"};
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(listener, (const struct sockaddr*)&own, 13), 0);
  CHECK_EQUAL(listen(listener, 1), 0);
  REFUSED(connect(listener, (const struct sockaddr*)&own, 13), EINVAL);
  REFUSED(connect(pair[0], (const struct sockaddr*)&own, 13), EISCONN);
  close(listener);
  REFUSED(accept(pair[0], NULL, NULL), EINVAL);
  REFUSED(listen(pair[0], 1), EINVAL);
  CHECK_EQUAL(write(pair[0], "ab", 2), 2);
  CHECK_EQUAL(unread(pair[1]), 2);
  close(pair[0]);
  close(pair[1]);
}

static void pipes(void) {
  int ends[2];
  char path[64];
  CHECK_EQUAL(pipe(ends), 0);
  no_socket(ends[0]);
  CHECK_EQUAL(type_of(ends[1]), S_IFIFO);
  REFUSED(read(ends[1], &byte, 1), EBADF);
  REFUSED(write(ends[0], &byte, 1), EBADF);
  REFUSED(pread(ends[0], &byte, 1, 0), ESPIPE);
  CHECK_EQUAL(write(ends[1], "abcd", 4), 4);
  CHECK_EQUAL(unread(ends[0]), 4);
  close(ends[0]);
  close(ends[1]);
  snprintf(path, sizeof path, "/tmp/%s-%d", program_invocation_short_name, getpid());
  CHECK_EQUAL(mkfifo(path, 0600), 0);
  const int both = open(path, O_RDWR);
  CHECK_EQUAL(unlink(path), 0);
  CHECK_EQUAL(type_of(both), S_IFIFO);
  CHECK_EQUAL(write(both, "abcde", 5), 5);
  CHECK_EQUAL(unread(both), 5);
  close(both);
}

static void others(void) {
  const int event = eventfd(1, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const int epoll = epoll_create1(0), random = open("/dev/urandom", O_RDONLY);
  no_socket(event);
  no_socket(timer);
  no_socket(epoll);
  no_socket(random);
  CHECK_EQUAL(type_of(event), 0);
  CHECK_EQUAL(type_of(timer), 0);
  CHECK_EQUAL(type_of(epoll), 0);
  CHECK_EQUAL(type_of(random), S_IFCHR);
  REFUSED(pread(event, &byte, 1, 0), ESPIPE);
  REFUSED(write(timer, "12345678", 8), EINVAL);
  REFUSED(read(epoll, &byte, 1), EINVAL);
  CHECK_EQUAL(pread(random, &byte, 1, 5), 1);
  close(event);
  close(timer);
  close(epoll);
  close(random);
}

int main(void) {
  tcp();
  udp();
  unix_streams();
  pipes();
  others();
  return succeed();
}
