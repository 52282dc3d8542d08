// SPDX-License-Identifier: Apache-2.0
// Options of unix sockets read back; SO_PEERCRED of an accepted stream returns the connecting
// process.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  snprintf(a.sun_path + 1, 60, "%s-%d", program_invocation_short_name, getpid());
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  int v = -1;
  socklen_t n;
  const struct timeval t = {2, 500000};
  struct timeval u;
  n = sizeof u;
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &u, &n), 0);
  CHECK(u.tv_sec == 2 && u.tv_usec == 500000);
  n = sizeof v;
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_PROTOCOL, &v, &n), 0);
  CHECK_EQUAL(v, 0);
  CHECK(getsockopt(s, SOL_SOCKET, 9999, &v, &n) == -1 && errno == ENOPROTOOPT);
  CHECK_EQUAL(bind(s, (const struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(listen(s, 1), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int c = socket(AF_UNIX, SOCK_STREAM, 0);
    char b;
    if (connect(c, (const struct sockaddr*)&a, sizeof a) != 0) _exit(1);
    struct ucred peer;
    n = sizeof peer;
    if (getsockopt(c, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0) _exit(2);
    _exit(peer.pid == getppid() && read(c, &b, 1) == 0 ? 42 : 3);
  }
  const int p = accept(s, NULL, NULL);
  struct ucred peer;
  n = sizeof peer;
  CHECK_EQUAL(getsockopt(p, SOL_SOCKET, SO_PEERCRED, &peer, &n), 0);
  CHECK(peer.pid == child && peer.uid == getuid() && peer.gid == getgid());
  CHECK_EQUAL(close(p), 0);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  return succeed();
}
