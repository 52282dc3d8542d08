// SPDX-License-Identifier: Apache-2.0
// A listening Unix socket accepts clients in the order of arrival; nonblocking ones get EAGAIN.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

static struct sockaddr_un address = {AF_UNIX, ""};
static socklen_t size;
static void* client(void* x) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(fd, (struct sockaddr*)&address, size), 0);
  const char c = (char)(long)x;
  CHECK_EQUAL(write(fd, &c, 1), 1);
  char answer = 0;
  CHECK_EQUAL(read(fd, &answer, 1), 1);
  CHECK_EQUAL(answer, c + 1);
  close(fd);
  return x;
}

int main(void) {
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s-%d",
           program_invocation_short_name, getpid());
  size = (socklen_t)(sizeof address.sun_family + 1 + strlen(address.sun_path + 1));
  const int at = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  CHECK_EQUAL(bind(at, (struct sockaddr*)&address, size), 0);
  CHECK_EQUAL(listen(at, 5), 0);
  CHECK_EQUAL(accept(at, NULL, NULL), -1);
  CHECK_EQUAL(errno, EAGAIN);
  const pthread_t a = start(client, (void*)'a'), b = start(client, (void*)'m');
  for (int served = 0; served < 2;) {
    const int fd = accept4(at, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
      CHECK_EQUAL(errno, EAGAIN);
      sleep_ms(1);
      continue;
    }
    char c;
    CHECK_EQUAL(read(fd, &c, 1), 1);
    ++c;
    CHECK_EQUAL(write(fd, &c, 1), 1);
    CHECK_EQUAL(read(fd, &c, 1), 0);
    close(fd);
    ++served;
  }
  join(a);
  join(b);
  return succeed();
}
