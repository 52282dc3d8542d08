// SPDX-License-Identifier: Apache-2.0
// Options of an unconnected TCP socket read back.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "../small.h"

static int s;

static int get(int level, int option) {
  int v = -1;
  socklen_t n = sizeof v;
  CHECK_EQUAL(getsockopt(s, level, option, &v, &n), 0);
  CHECK_EQUAL(n, sizeof v);
  return v;
}

static void back(int level, int option, int before, int value) {
  CHECK_EQUAL(get(level, option), before);
  CHECK_EQUAL(setsockopt(s, level, option, &value, sizeof value), 0);
  CHECK_EQUAL(get(level, option), value);
}

int main(void) {
  s = socket(AF_INET, SOCK_STREAM, 0);
  back(IPPROTO_TCP, TCP_NODELAY, 0, 1);
  back(IPPROTO_TCP, TCP_KEEPIDLE, 7200, 60);
  back(IPPROTO_TCP, TCP_KEEPINTVL, 75, 5);
  back(IPPROTO_TCP, TCP_KEEPCNT, 9, 3);
  back(IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 3000);
  back(IPPROTO_TCP, TCP_CORK, 0, 1);
  back(IPPROTO_TCP, TCP_SYNCNT, get(IPPROTO_TCP, TCP_SYNCNT), 3);
  back(SOL_SOCKET, SO_KEEPALIVE, 0, 1);
  back(SOL_SOCKET, SO_REUSEADDR, 0, 1);
  back(SOL_SOCKET, SO_REUSEPORT, 0, 1);
  back(SOL_SOCKET, SO_OOBINLINE, 0, 1);
  back(SOL_SOCKET, SO_PRIORITY, 0, 4);
  back(IPPROTO_IP, IP_TOS, 0, 0x10);
  back(IPPROTO_IP, IP_TTL, 64, 33);
  CHECK_EQUAL(get(SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  CHECK_EQUAL(get(SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
  CHECK_EQUAL(get(SOL_SOCKET, SO_DOMAIN), AF_INET);
  CHECK_EQUAL(get(SOL_SOCKET, SO_ACCEPTCONN), 0);
  CHECK_EQUAL(get(SOL_SOCKET, SO_ERROR), 0);
  const int room = 20000;
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
  CHECK_EQUAL(get(SOL_SOCKET, SO_RCVBUF), 40000);
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
  CHECK_EQUAL(get(SOL_SOCKET, SO_SNDBUF), 40000);
  const struct linger l = {1, 7};
  struct linger m;
  socklen_t n = sizeof m;
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_LINGER, &m, &n), 0);
  CHECK(m.l_onoff == 1 && m.l_linger == 7);
  const struct timeval t = {3, 500000};
  struct timeval u;
  n = sizeof u;
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t), 0);
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &u, &n), 0);
  CHECK(u.tv_sec == 3 && u.tv_usec == 500000);
  return succeed();
}
