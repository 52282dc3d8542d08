// SPDX-License-Identifier: Apache-2.0
// solo: --clients tests/interpose/io_unix_intruder.script
// native: no
// A process outside the server connects to its unix socket: it is not served, but the server's own
// connections are.
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

static struct sockaddr_un address = {AF_UNIX, "/tmp/crane-solo-intruder"};

static int connected(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(fd, (struct sockaddr*)&address, sizeof address), 0);
  return fd;
}

int main(void) {
  char bytes[16];
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(address.sun_path);
  CHECK_EQUAL(bind(listener, (struct sockaddr*)&address, sizeof address), 0);
  CHECK_EQUAL(listen(listener, 8), 0);
  struct pollfd p = {listener, POLLIN, 0};
  printf("waited: %d\n", poll(&p, 1, 500));
  for (int i = 0; i < 2; ++i) {
    const int client = connected();
    CHECK_EQUAL(write(client, "own", 3), 3);
    struct sockaddr_un from;
    socklen_t size = sizeof from;
    const int served = accept(listener, (struct sockaddr*)&from, &size);
    const int n = (int)read(served, bytes, sizeof bytes);
    printf("accepted, %d bytes of name: %.*s\n", (int)size, n, bytes);
    close(served);
    close(client);
  }
  unlink(address.sun_path);
  return 0;
}
