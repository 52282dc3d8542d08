// SPDX-License-Identifier: Apache-2.0
// A terminal's descriptor can be passed over a socket and inherited over exec. The terminal hangs
// up when the last descriptor is closed.
#include "../terminal.h"
#include "unix_rights.h"

int main(void) {
  int master, line, ends[2];
  char b[16];
  open_pair(&master, &line);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  send_one(ends[0], line);
  close(line);
  CHECK_EQUAL(events_of(master) & POLLHUP, 0);  // the descriptor is in the socket's queue
  line = receive_one(ends[1], 0);
  CHECK_EQUAL(isatty(line), 1);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    dup2(line, 1);
    execl("/bin/echo", "echo", "by exec", NULL);
    _exit(127);
  }
  expect(master, "by exec\r\n");
  CHECK_EQUAL(status_of_child(pid), 0);
  close(line);
  CHECK_EQUAL(read(master, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  return succeed();
}
