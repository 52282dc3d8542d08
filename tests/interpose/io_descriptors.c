// SPDX-License-Identifier: Apache-2.0
// Descriptor numbers and what they share: dup, dup2, F_DUPFD, fork, exec, close_range.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void numbers(void) {
  int p[2];
  pipe(p);
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  const int e = eventfd(0, 0);
  printf("numbers %d %d %d %d\n", p[0], p[1], s, e);
  close(p[0]);
  const int again = dup(p[1]);
  printf("lowest %d\n", again);
  int fd = dup2(p[1], 20);
  printf("dup2 %d same %d bad %d\n", fd, dup2(20, 20), dup2(99, 30) < 0 && errno == EBADF);
  printf("least %d\n", fcntl(p[1], F_DUPFD, 15));
  fd = dup3(p[1], 21, O_CLOEXEC);
  printf("dup3 %d %d\n", fd, (fcntl(21, F_GETFD) & FD_CLOEXEC) != 0);
  printf("dup3 same %d\n", dup3(21, 21, 0) < 0 && errno == EINVAL);
  for (fd = 3; fd < 40; ++fd) close(fd);
  printf("closed %d\n", close(20) < 0 && errno == EBADF);
}

static void last_reference(void) {
  int p[2];
  char c;
  pipe(p);
  const int copy = dup(p[1]);
  close(p[1]);
  write(copy, "x", 1);
  printf("through the copy %zd\n", read(p[0], &c, 1));
  if (fork() == 0) {
    close(copy);
    _exit(0);
  }
  wait(NULL);
  fcntl(p[0], F_SETFL, O_NONBLOCK);
  printf("still open %d\n", read(p[0], &c, 1) < 0 && errno == EAGAIN);
  const int shared = dup(p[0]);
  printf("flags are shared %d\n", (fcntl(shared, F_GETFL) & O_NONBLOCK) != 0);
  close(copy);
  printf("end %zd\n", read(shared, &c, 1));
  close_range((unsigned)p[0], (unsigned)shared, 0);
  printf("range %d\n", fcntl(shared, F_GETFD) < 0 && errno == EBADF);
}

static void high_numbers(void) {
  // The program sees only its own descriptors.
  int open_ones = 0;
  for (int fd = 3; fd < 4096; ++fd) open_ones += fcntl(fd, F_GETFD) >= 0;
  printf("others %d\n", open_ones);
  closefrom(3);
  const int fd = open("/proc/self/exe", O_RDONLY);
  printf("after closefrom %d\n", fd);
  close(fd);
}

static void after_exec(const char* self) {
  int kept[2], gone[2];
  pipe(kept);
  pipe2(gone, O_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    char number[16];
    snprintf(number, sizeof number, "%d", kept[1]);
    close(kept[0]);
    execl(self, self, "child", number, NULL);
    _exit(9);
  }
  close(kept[1]);
  close(gone[1]);
  char b[16];
  ssize_t n = read(gone[0], b, sizeof b);
  printf("closed by exec %zd\n", n);
  n = read(kept[0], b, sizeof b);
  printf("kept %zd %.*s\n", n, (int)n, b);
  int status = -1;
  waitpid(child, &status, 0);
  printf("status %d\n", status);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "child") == 0) {
    return write(atoi(argv[2]), "from exec", 9) == 9 ? 0 : 8;
  }
  closefrom(3);  // what the shell left open
  numbers();
  last_reference();
  high_numbers();
  after_exec(argv[0]);
  printf("EXIT-SUCCESS\n");
  return 0;
}
