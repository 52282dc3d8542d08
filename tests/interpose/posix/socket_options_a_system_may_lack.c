// SPDX-License-Identifier: Apache-2.0
// Features that a system may lack are refused as by a system that lacks them, or work: a call that
// succeeds has its effect.
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "tcp_loopback.h"

static const int one = 1;

static int may_lack(int result) {
  if (result < 0) CHECK(errno == ENOPROTOOPT || errno == ENOSYS || errno == EPERM);
  return result >= 0;
}

static void zero_copies_are_reported(void) {
  int s[2];
  char control[128], b[4];
  connected_pair(s);
  if (!may_lack(setsockopt(s[0], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one))) return;
  CHECK_EQUAL(send(s[0], "abcd", 4, MSG_ZEROCOPY), 4);
  CHECK_EQUAL(recv(s[1], b, 4, MSG_WAITALL), 4);
  struct pollfd p = {s[0], 0, 0};
  CHECK_EQUAL(poll(&p, 1, 5000), 1);
  struct msghdr m = {.msg_control = control, .msg_controllen = sizeof control};
  CHECK(recvmsg(s[0], &m, MSG_ERRQUEUE) >= 0);
}

static void errors_of_datagrams_are_queued(void) {
  struct sockaddr_in a = loopback_at(0);
  socklen_t n = sizeof a;
  char b[4], control[128];
  const int gone = socket(AF_INET, SOCK_DGRAM, 0), s = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(bind(gone, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(getsockname(gone, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(close(gone), 0);
  if (!may_lack(setsockopt(s, IPPROTO_IP, IP_RECVERR, &one, sizeof one))) return;
  CHECK_EQUAL(sendto(s, "x", 1, 0, (struct sockaddr*)&a, sizeof a), 1);
  struct pollfd p = {s, 0, 0};
  CHECK_EQUAL(poll(&p, 1, 5000), 1);
  struct iovec v = {b, sizeof b};
  struct msghdr m = {
      .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  CHECK_EQUAL(recvmsg(s, &m, MSG_ERRQUEUE), 1);
}

static void faults_are_reported(void) {
  const int u = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  if (!may_lack(u)) return;
  struct uffdio_api api = {.api = UFFD_API};
  CHECK_EQUAL(ioctl(u, UFFDIO_API, &api), 0);
}

static void congestion_controls_have_names(void) {
  char name[16];
  socklen_t n = sizeof name;
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
  CHECK_EQUAL(getsockopt(s, IPPROTO_TCP, TCP_CONGESTION, name, &n), 0);
  CHECK_EQUAL(n, 16);
  CHECK_EQUAL(strcmp(name, "reno"), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "no such one", 11), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof one), -1);
  CHECK_EQUAL(errno, ENOENT);
}

static void buffers_are_forced(void) {
  int got = 0;
  socklen_t n = sizeof got;
  const int s = socket(AF_INET, SOCK_DGRAM, 0), wanted = 300000;
  for (int option = SO_SNDBUFFORCE; option <= SO_RCVBUFFORCE; ++option) {
    if (!may_lack(setsockopt(s, SOL_SOCKET, option, &wanted, sizeof wanted))) continue;
    const int plain = option == SO_SNDBUFFORCE ? SO_SNDBUF : SO_RCVBUF;
    CHECK_EQUAL(getsockopt(s, SOL_SOCKET, plain, &got, &n), 0);
    CHECK_EQUAL(got, 2 * wanted);
  }
  CHECK(getsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &got, &n) == -1 && errno == ENOPROTOOPT);
}

int main(void) {
  zero_copies_are_reported();
  errors_of_datagrams_are_queued();
  faults_are_reported();
  congestion_controls_have_names();
  buffers_are_forced();
  return succeed();
}
