// SPDX-License-Identifier: Apache-2.0
// A unix socket bound to a name makes a file of that kind, which remains after close, blocks
// another bind, and refuses connections without a listener.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char dir[] = "/tmp/unixXXXXXX";
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  struct stat st;
  CHECK(mkdtemp(dir) != NULL);
  snprintf(a.sun_path, sizeof a.sun_path, "%s/s", dir);
  const struct sockaddr* const at = (const struct sockaddr*)&a;
  const int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
  FAILS(connect(c, at, sizeof a), ENOENT);
  umask(022);
  CHECK_EQUAL(bind(s, at, sizeof a), 0);
  CHECK_EQUAL(stat(a.sun_path, &st), 0);
  CHECK(S_ISSOCK(st.st_mode));
  CHECK_EQUAL(st.st_mode & 0777, 0755);
  FAILS(open(a.sun_path, O_RDWR), ENXIO);
  FAILS(bind(c, at, sizeof a), EADDRINUSE);
  FAILS(connect(c, at, sizeof a), ECONNREFUSED);
  CHECK_EQUAL(listen(s, 1), 0);
  CHECK_EQUAL(connect(c, at, sizeof a), 0);
  CHECK_EQUAL(close(s), 0);
  CHECK_EQUAL(stat(a.sun_path, &st), 0);
  FAILS(connect(socket(AF_UNIX, SOCK_STREAM, 0), at, sizeof a), ECONNREFUSED);
  CHECK_EQUAL(unlink(a.sun_path), 0);
  FAILS(connect(socket(AF_UNIX, SOCK_STREAM, 0), at, sizeof a), ENOENT);
  CHECK_EQUAL(close(creat(a.sun_path, 0600)), 0);
  FAILS(connect(socket(AF_UNIX, SOCK_STREAM, 0), at, sizeof a), ECONNREFUSED);
  CHECK_EQUAL(unlink(a.sun_path), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  FAILS(bind(socket(AF_UNIX, SOCK_STREAM, 0), at, sizeof a), ENOENT);
  return succeed();
}
