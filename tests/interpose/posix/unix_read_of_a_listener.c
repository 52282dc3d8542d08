// SPDX-License-Identifier: Apache-2.0
// recv of a unix stream socket that is not connected, or that listens, fails with EINVAL; send
// fails with ENOTCONN.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

int main(void) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  char b;
  snprintf(a.sun_path + 1, 60, "%s-%d", program_invocation_short_name, getpid());
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(recv(s, &b, 1, MSG_DONTWAIT) == -1 && errno == EINVAL);
  CHECK_EQUAL(bind(s, (const struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(listen(s, 1), 0);
  CHECK(recv(s, &b, 1, MSG_DONTWAIT) == -1 && errno == EINVAL);
  CHECK(send(s, "x", 1, MSG_NOSIGNAL) == -1 && errno == ENOTCONN);
  return succeed();
}
