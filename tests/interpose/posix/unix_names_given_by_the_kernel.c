// SPDX-License-Identifier: Apache-2.0
// bind of a unix socket with an empty name gives it an abstract name of five digits, unique to each
// socket.
#define _GNU_SOURCE
#include <ctype.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

int main(void) {
  struct sockaddr_un a[2];
  socklen_t n;
  char b[4];
  int s[2];
  for (int i = 0; i < 2; ++i) {
    s[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
    a[i].sun_family = AF_UNIX;
    CHECK_EQUAL(bind(s[i], (struct sockaddr*)&a[i], sizeof a[i].sun_family), 0);
    n = sizeof a[i];
    CHECK_EQUAL(getsockname(s[i], (struct sockaddr*)&a[i], &n), 0);
    CHECK_EQUAL(n, offsetof(struct sockaddr_un, sun_path) + 6);
    CHECK_EQUAL(a[i].sun_path[0], 0);
    for (int k = 1; k < 6; ++k) CHECK(isxdigit((unsigned char)a[i].sun_path[k]));
  }
  CHECK(memcmp(&a[0], &a[1], n) != 0);
  CHECK_EQUAL(sendto(s[0], "abc", 3, 0, (struct sockaddr*)&a[1], n), 3);
  struct sockaddr_un from;
  socklen_t m = sizeof from;
  CHECK_EQUAL(recvfrom(s[1], b, sizeof b, 0, (struct sockaddr*)&from, &m), 3);
  CHECK(m == n && memcmp(&from, &a[0], n) == 0);
  return succeed();
}
