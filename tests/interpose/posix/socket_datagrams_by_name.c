// SPDX-License-Identifier: Apache-2.0
// Unix datagram sockets that find each other by name: a thread that waits for a message, or for
// room in a full queue, delays no other thread; poll and epoll report messages; descriptors are
// passed.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../child.h"

static struct sockaddr_un names[2] = {{.sun_family = AF_UNIX}, {.sun_family = AF_UNIX}};
static int sockets[2];
enum { kMany = 2000 };

static const struct sockaddr* name(int i) { return (const struct sockaddr*)&names[i]; }

static int bound(int i) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  CHECK(fd >= 0);
  CHECK_EQUAL(bind(fd, name(i), sizeof names[i]), 0);
  return fd;
}

static void* answer(void* x) {
  char b[16];
  struct sockaddr_un from;
  socklen_t n = sizeof from;
  const ssize_t got = recvfrom(sockets[0], b, sizeof b, 0, (struct sockaddr*)&from, &n);
  CHECK_EQUAL(got, 4);
  CHECK_EQUAL(sendto(sockets[0], "pong", 4, 0, (struct sockaddr*)&from, n), 4);
  return x;
}

static void* count(void* x) {
  int number;
  for (int i = 0; i < kMany; ++i) {
    CHECK_EQUAL(read(sockets[0], &number, sizeof number), sizeof number);
    CHECK_EQUAL(number, i);
  }
  return x;
}

static int send_all(int x) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  CHECK_EQUAL(connect(fd, name(0), sizeof names[0]), 0);
  for (int i = 0; i < kMany; ++i) CHECK_EQUAL(write(fd, &i, sizeof i), sizeof i);
  return x;
}

static void readiness(void) {
  char b[4];
  struct pollfd p = {sockets[0], POLLIN, 0};
  CHECK_EQUAL(recv(sockets[0], b, 4, MSG_DONTWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(poll(&p, 1, 10), 0);
  const int ep = epoll_create1(0);
  struct epoll_event e = {.events = EPOLLIN, .data.fd = 7}, got;
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, sockets[0], &e), 0);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 0), 0);
  CHECK_EQUAL(sendto(sockets[1], "x", 1, 0, name(0), sizeof names[0]), 1);
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(got.data.fd, 7);
  CHECK_EQUAL(recv(sockets[0], b, 4, MSG_PEEK), 1);
  CHECK_EQUAL(recv(sockets[0], b, 4, 0), 1);
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  const struct timeval soon = {0, 20000};
  CHECK_EQUAL(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
  CHECK_EQUAL(recv(sockets[0], b, 4, 0), -1);
  CHECK_EQUAL(errno, EAGAIN);
}

static void rights(void) {
  int ends[2], received;
  char b[4], space[CMSG_SPACE(sizeof(int))] = {0};
  CHECK_EQUAL(pipe(ends), 0);
  struct iovec v = {b, 1};
  struct msghdr m = {.msg_name = &names[0], .msg_namelen = sizeof names[0], .msg_iov = &v};
  m.msg_iovlen = 1;
  m.msg_control = space;
  m.msg_controllen = sizeof space;
  struct cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(c), &ends[1], sizeof(int));
  CHECK_EQUAL(sendmsg(sockets[1], &m, 0), 1);
  CHECK_EQUAL(close(ends[1]), 0);
  m.msg_name = NULL;
  m.msg_namelen = 0;
  CHECK_EQUAL(recvmsg(sockets[0], &m, 0), 1);
  memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
  CHECK_EQUAL(write(received, "abc", 3), 3);
  CHECK_EQUAL(read(ends[0], b, sizeof b), 3);
  CHECK_EQUAL(close(received), 0);
  CHECK_EQUAL(read(ends[0], b, sizeof b), 0);
}

int main(void) {
  char b[16];
  for (int i = 0; i < 2; ++i) {
    snprintf(names[i].sun_path, sizeof names[i].sun_path, "/tmp/%s-%d-%d",
             program_invocation_short_name, getpid(), i);
    unlink(names[i].sun_path);  // left by a killed run
    sockets[i] = bound(i);
  }
  pthread_t t = start(answer, NULL);
  sleep_ms(10);
  CHECK_EQUAL(sendto(sockets[1], "ping", 4, 0, name(0), sizeof names[0]), 4);
  CHECK_EQUAL(recv(sockets[1], b, sizeof b, 0), 4);
  CHECK(memcmp(b, "pong", 4) == 0);
  join(t);
  const pid_t p = start_process(send_all, 0);
  sleep_ms(10);
  t = start(count, NULL);
  join(t);
  CHECK_EQUAL(status_of(p), 0);
  readiness();
  rights();
  for (int i = 0; i < 2; ++i) CHECK_EQUAL(unlink(names[i].sun_path), 0);
  CHECK_EQUAL(sendto(sockets[1], "x", 1, 0, name(0), sizeof names[0]), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(listen(sockets[0], 1), -1);
  CHECK_EQUAL(errno, EOPNOTSUPP);
  return succeed();
}
