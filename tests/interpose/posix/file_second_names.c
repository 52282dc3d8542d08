// SPDX-License-Identifier: Apache-2.0
// libc's alias names of functions behave like the main names. preadv2 and pwritev2 through
// syscall(2) work on descriptors without a position.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../child.h"

extern ssize_t __read(int, void*, size_t);
extern ssize_t __write(int, const void*, size_t);
extern int __close(int);
extern int __poll(struct pollfd*, nfds_t, int);
extern int __pipe(int*);
extern long __sysconf(int);
extern pid_t __fork(void);
extern pid_t __waitpid(pid_t, int*, int);
extern int __gethostname_chk(char*, size_t, size_t);

int main(void) {
  int ends[2];
  char byte = 'x', name[200], other[200];
  CHECK_EQUAL(__pipe(ends), 0);
  const pid_t child = __fork();
  if (child == 0) _exit(__read(ends[0], &byte, 1) == 1 && byte == 'y' ? 4 : 5);
  byte = 'y';
  CHECK_EQUAL(__write(ends[1], &byte, 1), 1);
  int status = 0;
  CHECK_EQUAL(__waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 4);
  struct pollfd watched = {ends[0], POLLIN, 0};
  CHECK_EQUAL(__poll(&watched, 1, 0), 0);
  for (int i = 0; i < 200; ++i) CHECK_EQUAL(__sysconf(i), sysconf(i));
  CHECK_EQUAL(__gethostname_chk(name, sizeof name, sizeof name), 0);
  CHECK_EQUAL(gethostname(other, sizeof other), 0);
  CHECK(strcmp(name, other) == 0);
  const struct iovec v = {&byte, 1};
  CHECK_EQUAL(syscall(SYS_pwritev2, ends[1], &v, 1, -1L, -1L, 0), 1);
  CHECK_EQUAL(syscall(SYS_preadv2, ends[0], &v, 1, -1L, -1L, 0), 1);
  CHECK_EQUAL(syscall(SYS_preadv, ends[0], &v, 1, 0L, 0L), -1);
  CHECK_EQUAL(errno, ESPIPE);
  const int random = open("/dev/urandom", O_RDONLY);
  CHECK_EQUAL(preadv(random, &v, 1, 0), 1);
  CHECK_EQUAL(__close(random), 0);
  return succeed();
}
