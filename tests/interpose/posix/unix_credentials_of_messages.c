// SPDX-License-Identifier: Apache-2.0
// With SO_PASSCRED each message carries its sender's credentials, also if a child sends it. With
// SCM_CREDENTIALS a process may send its own credentials; only root may send others. SO_PEERCRED
// returns the creator of the pair.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/wait.h>

#include "../small.h"

static char control[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));

static struct ucred receive(int s) {
  char x;
  struct iovec v = {&x, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  CHECK_EQUAL(recvmsg(s, &m, 0), 1);
  const struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
  CHECK(c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS);
  struct ucred u;
  memcpy(&u, CMSG_DATA(c), sizeof u);
  return u;
}

static ssize_t claim(int s, struct ucred u) {
  struct iovec v = {(void*)"x", 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_CREDENTIALS;
  c->cmsg_len = CMSG_LEN(sizeof u);
  memcpy(CMSG_DATA(c), &u, sizeof u);
  return sendmsg(s, &m, 0);
}

int main(void) {
  int s[2], on = 1;
  struct ucred u;
  socklen_t n = sizeof u;
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
  CHECK_EQUAL(getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &u, &n), 0);
  CHECK(u.pid == getpid() && u.uid == geteuid() && u.gid == getegid());
  CHECK_EQUAL(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  on = 0;
  n = sizeof on;
  CHECK_EQUAL(getsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, &n), 0);
  CHECK_EQUAL(on, 1);
  CHECK_EQUAL(send(s[0], "x", 1, 0), 1);
  u = receive(s[1]);
  CHECK(u.pid == getpid() && u.uid == getuid() && u.gid == getgid());
  const pid_t child = fork();
  if (child == 0) _exit(send(s[0], "x", 1, 0) != 1);
  u = receive(s[1]);
  CHECK_EQUAL(u.pid, child);
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  u = (struct ucred){getpid(), getuid(), getgid()};
  CHECK_EQUAL(claim(s[0], u), 1);
  u = receive(s[1]);
  CHECK_EQUAL(u.pid, getpid());
  u.uid = 12345;
  if (geteuid() != 0) {
    CHECK_EQUAL(claim(s[0], u), -1);
    CHECK_EQUAL(errno, EPERM);
  } else {
    CHECK_EQUAL(claim(s[0], u), 1);
    CHECK_EQUAL(receive(s[1]).uid, 12345);
  }
  return succeed();
}
