// SPDX-License-Identifier: Apache-2.0
// An instance is an open file: children inherit it, messages pass it to others, and it ends with
// its last descriptor. The end of a process and exec close files.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../inotify.h"

static void send_descriptor(int socket, int fd) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
  struct iovec v = {"x", 1};
  const struct msghdr m = {
      .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  CHECK_EQUAL(sendmsg(socket, &m, 0), 1);
}

static int receive_descriptor(int socket) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  char byte;
  int fd;
  struct iovec v = {&byte, 1};
  struct msghdr m = {
      .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  CHECK_EQUAL(recvmsg(socket, &m, 0), 1);
  memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
  return fd;
}

int main(int count, char** words) {
  if (count > 1) return 0;
  enter_directory();
  make_file("f");
  int fd = inotify_init1(IN_NONBLOCK);
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_ALL_EVENTS), 1);

  pid_t child = fork();
  if (child == 0) {
    CHECK(open("f", O_RDONLY) >= 0);
    EXPECT(fd, "1 open f");
    CHECK_EQUAL(inotify_add_watch(fd, "f", IN_DELETE_SELF), 2);
    _exit(0);  // the kernel closes it
  }
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  EXPECT(fd, "1 close f");

  child = fork();
  if (child == 0) {
    CHECK(open("f", O_RDONLY | O_CLOEXEC) >= 0 && open("f", O_WRONLY) >= 0);
    execl("/proc/self/exe", words[0], "again", NULL);
    _exit(1);
  }
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  EXPECT(fd, "1 open f, 1 close f, 1 close_write f");

  int pair[2];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  send_descriptor(pair[0], fd);
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(chmod("f", 0640), 0);
  fd = receive_descriptor(pair[1]);
  EXPECT(fd, "1 attrib f");
  const int copy = dup(fd);
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(unlink("f"), 0);
  EXPECT(copy, "2 gone, 2 ignored, 1 delete f");
  CHECK_EQUAL(close(copy), 0);
  leave_directory();
  return succeed();
}
