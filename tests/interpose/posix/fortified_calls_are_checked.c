// SPDX-License-Identifier: Apache-2.0
// build: -O2 -D_FORTIFY_SOURCE=2 -Wno-error -w
// A program compiled with _FORTIFY_SOURCE is ended by a call that would overflow its buffer, and by
// an open() without a required mode, as natively: SIGABRT. Calls that fit continue.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <pty.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../child.h"

struct small {
  char bytes[8];
};

static volatile size_t given;
static int ends[2], control, line, zeros;

static int prints(int fd, const char* form, ...) {
  va_list list;
  va_start(list, form);
  const int n = vdprintf(fd, form, list);
  va_end(list);
  return n;
}

static long call(int which) {
  struct small room;
  struct pollfd one[1] = {{ends[0], POLLIN, 0}};
  struct timespec none = {0, 0};
  char form[8];
  int put = 0;
  strcpy(form, given > 1 ? "%n" : "%d");
  switch (which) {
    case 0:
      return read(zeros, room.bytes, 8 * given);
    case 1:
      return pread(zeros, room.bytes, 8 * given, 0);
    case 2:
      return pread64(zeros, room.bytes, 8 * given, 0);
    case 3:
      return recv(ends[0], room.bytes, 8 * given, MSG_DONTWAIT);
    case 4:
      return recvfrom(ends[0], room.bytes, 8 * given, MSG_DONTWAIT, NULL, NULL);
    case 5:
      return poll(one, given, 0);
    case 6:
      return ppoll(one, given, &none, NULL);
    case 7:
      return gethostname(room.bytes, 8 * given);
    case 8:
      return readlink("/proc/self/exe", room.bytes, 8 * given);
    case 9:
      return readlinkat(AT_FDCWD, "/proc/self/exe", room.bytes, 8 * given);
    case 10:
      return ptsname_r(control, room.bytes, 8 * given);
    case 11:
      return ttyname_r(line, room.bytes, 8 * given);
    case 12:
      return open("/", (given > 1 ? O_CREAT : 0) | O_RDONLY);
    case 13:
      return openat(AT_FDCWD, "/", (given > 1 ? O_CREAT : 0) | O_RDONLY);
    case 14:
      return open("/tmp", given > 1 ? O_TMPFILE | O_WRONLY : O_RDONLY);
    case 15:
      return mq_open("/crane-none", (given > 1 ? O_CREAT : 0) | O_RDONLY);
    case 16:
      return dprintf(zeros, form, &put);
    default:
      return prints(zeros, form, &put);
  }
}
enum { kCalls = 18 };

static int child(int which) {
  call(which);
  return 7;
}

int main(void) {
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  CHECK_EQUAL(openpty(&control, &line, NULL, NULL, NULL), 0);
  zeros = open("/dev/zero", O_RDWR);
  CHECK(zeros >= 0);
  for (int which = 0; which < kCalls; ++which) {
    given = 1;
    CHECK_EQUAL(status_of(start_process(child, which)), 7 << 8);
    given = 2;
    const int status = status_of(start_process(child, which));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
      printf("call %d: status %x\n", which, (unsigned)status);
      return 1;
    }
  }
  return succeed();
}
