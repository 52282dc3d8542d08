// SPDX-License-Identifier: Apache-2.0
// A descriptor sent in a message refers to the same open file in the receiving process.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../child.h"

static int fds[2];
static union {
  struct cmsghdr head;
  char room[CMSG_SPACE(sizeof(int))];
} control;
static struct msghdr message(struct iovec* v) {
  struct msghdr m = {0};
  m.msg_iov = v;
  m.msg_iovlen = 1;
  m.msg_control = &control;
  m.msg_controllen = sizeof control;
  return m;
}
static int receiver(int x) {
  char c;
  struct iovec v = {&c, 1};
  struct msghdr m = message(&v);
  CHECK_EQUAL(recvmsg(fds[1], &m, 0), 1);
  const struct cmsghdr* h = CMSG_FIRSTHDR(&m);
  CHECK(h != NULL && h->cmsg_type == SCM_RIGHTS);
  int to;
  memcpy(&to, CMSG_DATA(h), sizeof to);
  CHECK_EQUAL(write(to, "through", 7), 7);
  return x;
}

int main(void) {
  int ends[2];
  char b[8];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const pid_t p = start_process(receiver, 0);
  CHECK_EQUAL(pipe(ends), 0);
  struct iovec v = {(void*)"m", 1};
  struct msghdr m = message(&v);
  struct cmsghdr* h = CMSG_FIRSTHDR(&m);
  h->cmsg_level = SOL_SOCKET;
  h->cmsg_type = SCM_RIGHTS;
  h->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(h), &ends[1], sizeof(int));
  CHECK_EQUAL(sendmsg(fds[0], &m, 0), 1);
  close(ends[1]);
  CHECK_EQUAL(read(ends[0], b, sizeof b), 7);
  CHECK_EQUAL(memcmp(b, "through", 7), 0);
  CHECK_EQUAL(status_of(p), 0);
  CHECK_EQUAL(read(ends[0], b, sizeof b), 0);
  return succeed();
}
