// SPDX-License-Identifier: Apache-2.0
// solo: --sockets-in /srv/host/ --sockets-in /etc --clients tests/interpose/io_unix_outbound.script
// native: no
// A server connects to unix sockets of the host: the outcome is what was admitted, whatever exists
// at the path. Outside the permitted directories no process of the host is reached.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "outbound.h"

#define SOCKET "/srv/host/backend.sock"

static const char* try_connect(int fd, const char* path) {
  struct sockaddr_un a;
  memset(&a, 0, sizeof a);
  a.sun_family = AF_UNIX;
  strcpy(a.sun_path, path);
  return outcome(connect(fd, (const struct sockaddr*)&a, sizeof a));
}

static void show_names(int fd) {
  struct sockaddr_un a;
  socklen_t n = sizeof a;
  memset(&a, 0, sizeof a);
  printf("  local %s", outcome(getsockname(fd, (struct sockaddr*)&a, &n)));
  printf(" %d bytes", (int)n);
  n = sizeof a;
  memset(&a, 0, sizeof a);
  printf(", peer %s", outcome(getpeername(fd, (struct sockaddr*)&a, &n)));
  printf(" %s\n", a.sun_path);
}

static void show_options(int fd) {
  struct ucred who;
  int number = 0;
  socklen_t n = sizeof who;
  printf("  peer's credentials: %s", outcome(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n)));
  n = sizeof number;
  printf(", domain %s", outcome(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &number, &n)));
  printf(" %d", number);
  printf(", protocol %s", outcome(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &number, &n)));
  printf(" %d", number);
  printf(", of TCP %s\n", outcome(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &number, n)));
}

static void pass_descriptor(int fd) {
  char byte = 'x';
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {&byte, 1};
  struct msghdr m;
  memset(&m, 0, sizeof m);
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = &control;
  m.msg_controllen = sizeof control;
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(&control.head), &(int){0}, sizeof(int));
  printf("  a descriptor: %s\n", outcome(sendmsg(fd, &m, 0)));
}

static void blocking(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  printf("blocking: %s\n", try_connect(fd, SOCKET));
  show_names(fd);
  show_options(fd);
  pass_descriptor(fd);
  printf("  again: %s\n", try_connect(fd, SOCKET));
  send_and_expect(fd);
  close(fd);
}

static void nonblocking(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int set = epoll_create1(0);
  printf("nonblocking: %s\n", try_connect(fd, SOCKET));
  printf("  again: %s\n", try_connect(fd, SOCKET));
  show_names(fd);
  wait_for_outcome(set, fd);
  show_names(fd);
  expect_ready("input", set, fd);
  expect_ready("reset", set, fd);
  close(set);
  close(fd);
}

static void refused(void) {
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  printf("refused: %s", try_connect(fd, SOCKET));
  printf(", once more: %s\n", try_connect(fd, SOCKET));
  close(fd);
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  printf("refused later: %s", try_connect(fd, SOCKET));
  printf(", poll %x", (unsigned)ready(fd, -1));
  printf(", error %d", error_of(fd));
  printf(" %d", error_of(fd));
  printf(", poll %x\n", (unsigned)ready(fd, 0));
  printf("  shut down: %s", try_connect(fd, SOCKET));
  printf(", %s", outcome(shutdown(fd, SHUT_RDWR)));
  printf(", error %d\n", error_of(fd));
  close(fd);
}

// No process is contacted: there is no such file, and libcrane.so may check that.
static void elsewhere(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const int packets = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  printf("elsewhere: %s", try_connect(fd, "/srv/hosts/backend.sock"));
  printf(", by dots %s", try_connect(fd, "/srv/host/../none.sock"));
  printf(", packets %s\n", try_connect(packets, SOCKET));
  close(packets);
  close(fd);
}

// The file at the path differs between hosts: no file gets its number from it.
static void looks_at_nothing(void) {
  struct stat before, after;
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  stat("/usr", &before);
  printf("a file of the host: %s", try_connect(fd, "/etc/passwd"));
  stat("/usr/bin", &after);
  printf(", %d numbers given\n", (int)(after.st_ino - before.st_ino) - 1);
  close(fd);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  blocking();
  nonblocking();
  refused();
  elsewhere();
  looks_at_nothing();
  return 0;
}
