// SPDX-License-Identifier: Apache-2.0
// says: limit: .*multicast groups
// A socket joins groups until the limit (ENOBUFS); leaving one makes room.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../limit.h"

#define MOST 100

static int change(int socket, int option, int group) {
  struct ip_mreq m;
  m.imr_multiaddr.s_addr = htonl(0xEF010200u + (unsigned)group);
  m.imr_interface.s_addr = htonl(INADDR_LOOPBACK);
  return setsockopt(socket, IPPROTO_IP, option, &m, sizeof m);
}

int main(void) {
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(s >= 0);
  int joined = 0, refusals = 0;
  while (joined < MOST && refusals < 20) {
    if (change(s, IP_ADD_MEMBERSHIP, joined) == 0) {
      ++joined;
    } else {
      check_refusal(errno, ENOBUFS, ENOMEM, 0);
      ++refusals;
    }
  }
  CHECK(joined > 4);
  CHECK_EQUAL(change(s, IP_DROP_MEMBERSHIP, 2), 0);
  CHECK_EQUAL(change(s, IP_ADD_MEMBERSHIP, MOST), 0);
  CHECK_EQUAL(change(s, IP_DROP_MEMBERSHIP, MOST), 0);
  return succeed();
}
