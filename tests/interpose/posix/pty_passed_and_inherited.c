// SPDX-License-Identifier: Apache-2.0
// A terminal's descriptors are passed over a socket, kept over exec, and closed by the last one.
#include "../terminal.h"

#include <sys/socket.h>

static void send_descriptor(int socket, int fd) {
  char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 'x';
  struct iovec v = {&byte, 1};
  struct msghdr m = {
      .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  CHECK_EQUAL(sendmsg(socket, &m, 0), 1);
}

static int receive_descriptor(int socket) {
  char control[CMSG_SPACE(sizeof(int))], byte;
  struct iovec v = {&byte, 1};
  struct msghdr m = {
      .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  CHECK_EQUAL(recvmsg(socket, &m, 0), 1);
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}

int main(void) {
  int master, line, ends[2];
  char b[16];
  open_pair(&master, &line);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  send_descriptor(ends[0], line);
  close(line);
  CHECK_EQUAL(events_of(master) & POLLHUP, 0);  // it is on its way
  line = receive_descriptor(ends[1]);
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
