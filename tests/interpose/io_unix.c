// SPDX-License-Identifier: Apache-2.0
// Unix stream sockets between processes: names in files and abstract, queue, refusal, passed
// descriptors.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILS(call, error) ((call) < 0 && errno == (error))

static struct sockaddr_un name(const char* text, socklen_t* n, int abstract) {
  struct sockaddr_un a;
  memset(&a, 0, sizeof a);
  a.sun_family = AF_UNIX;
  strcpy(a.sun_path + abstract, text);
  *n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1);
  return a;
}

static void serve(const char* text, int abstract) {
  socklen_t n;
  const struct sockaddr_un a = name(text, &n, abstract);
  const int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int bound = bind(l, (const struct sockaddr*)&a, n);
  printf("bind %d listen %d\n", bound, listen(l, 5));
  for (int i = 0; i < 3; ++i) {
    if (fork() == 0) {
      const int c = socket(AF_UNIX, SOCK_STREAM, 0);
      if (connect(c, (const struct sockaddr*)&a, n) != 0) _exit(1);
      char text_in[16] = {0};
      const char id = (char)('a' + i);
      write(c, &id, 1);
      const ssize_t got = read(c, text_in, sizeof text_in);
      _exit(got == 2 && text_in[0] == id && text_in[1] == '!' ? 0 : 2);
    }
  }
  int letters = 0, good = 0;
  for (int i = 0; i < 3; ++i) {
    struct pollfd f = {l, POLLIN, 0};
    poll(&f, 1, -1);
    const int c = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    char b[2] = {0, '!'};
    read(c, b, 1);
    letters |= 1 << (b[0] - 'a');
    write(c, b, 2);
    char rest;
    read(c, &rest, 1);
    close(c);
  }
  for (int i = 0; i < 3; ++i) {
    int status = -1;
    wait(&status);
    good += status == 0;
  }
  printf("letters %d good %d\n", letters, good);
  fcntl(l, F_SETFL, O_NONBLOCK);
  printf("nobody %d\n", FAILS(accept(l, NULL, NULL), EAGAIN));
  close(l);
  const int c = socket(AF_UNIX, SOCK_STREAM, 0);
  printf("refused %d\n", FAILS(connect(c, (const struct sockaddr*)&a, n), ECONNREFUSED));
  close(c);
  if (!abstract) unlink(text);
}

static void send_fd(int s, int fd, const char* text) {
  char control[CMSG_SPACE(sizeof fd)];
  memset(control, 0, sizeof control);
  struct iovec v = {(void*)text, strlen(text)};
  struct msghdr m = {
      .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  sendmsg(s, &m, 0);
}

static int receive_fd(int s) {
  char control[CMSG_SPACE(sizeof(int))], b[16];
  struct iovec v = {b, sizeof b};
  struct msghdr m = {
      .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  const ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC);
  struct cmsghdr* c = CMSG_FIRSTHDR(&m);
  int fd = -1;
  if (n > 0 && c != NULL && c->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(c), sizeof fd);
  return fd;
}

// A pipe's end and an eventfd are sent to a child that reads from one and adds to the other.
static void rights(void) {
  int s[2], p[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, s);
  const pid_t child = fork();
  if (child == 0) {
    close(s[0]);
    const int from = receive_fd(s[1]);
    const int event = receive_fd(s[1]);
    char b[32];
    ssize_t n, total = 0;
    while ((n = read(from, b, sizeof b)) > 0) total += n;
    eventfd_write(event, (eventfd_t)total);
    _exit(0);
  }
  close(s[1]);
  pipe(p);
  const int event = eventfd(0, 0);
  send_fd(s[0], p[0], "pipe");
  send_fd(s[0], event, "event");
  close(p[0]);
  write(p[1], "travelled", 9);
  close(p[1]);
  eventfd_t v = 0;
  eventfd_read(event, &v);
  printf("rights %d\n", (int)v);
  int status = -1;
  waitpid(child, &status, 0);
  printf("status %d\n", status);
}

int main(void) {
  char directory[] = "/tmp/io_unix.XXXXXX";
  if (mkdtemp(directory) == NULL || chdir(directory) != 0) return 1;
  char path[64];
  snprintf(path, sizeof path, "%s/s", directory);
  serve(path, 0);
  serve("relative", 0);
  // The number separates two runs of this program on one host.
  snprintf(path, sizeof path, "crane-io-unix-%s", directory + 13);
  serve(path, 1);
  socklen_t n;
  const struct sockaddr_un absent = name("/nowhere/at/all", &n, 0);
  const int c = socket(AF_UNIX, SOCK_STREAM, 0);
  printf("absent %d\n", FAILS(connect(c, (const struct sockaddr*)&absent, n), ENOENT));
  rights();
  rmdir(directory);
  printf("EXIT-SUCCESS\n");
  return 0;
}
