// SPDX-License-Identifier: Apache-2.0
// Calls with memory that the program does not have return EFAULT and change nothing: stack
// unwinders test this way whether an address can be read (rt_sigprocmask with no action).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../small.h"

#define FAILS(call, error)     \
  do {                         \
    errno = 0;                 \
    CHECK_EQUAL((call), -1);   \
    CHECK_EQUAL(errno, error); \
  } while (0)

// 0 to read nothing: the kernel reads the memory before it refuses the action.
static int can_read(const void* memory) {
  CHECK_EQUAL(syscall(SYS_rt_sigprocmask, ~0, memory, NULL, sizeof(uint64_t)), -1);
  CHECK(errno == EINVAL || errno == EFAULT);
  return errno == EINVAL;
}

int main(void) {
  const long page = sysconf(_SC_PAGESIZE);
  char* const good =
      mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(good != MAP_FAILED);
  char* const read_only = good + page;
  char* const none = good + 2 * page;
  CHECK_EQUAL(mprotect(read_only, (size_t)page, PROT_READ), 0);
  CHECK_EQUAL(mprotect(none, (size_t)page, PROT_NONE), 0);
  CHECK_EQUAL(can_read(good), 1);
  CHECK_EQUAL(can_read(read_only), 1);
  CHECK_EQUAL(can_read(none), 0);
  CHECK_EQUAL(can_read((const void*)8), 0);
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(write(fds[1], "abc", 3), 3);
  const int count = eventfd(5, EFD_NONBLOCK);
  FAILS(write(fds[1], none, 1), EFAULT);
  FAILS(writev(fds[1], (const struct iovec*)(void*)none, 1), EFAULT);
  FAILS(read(fds[0], read_only, 3), EFAULT);
  FAILS(write(count, none, 8), EFAULT);
  FAILS(getrandom(none, 8, 0), EFAULT);
  FAILS(nanosleep((const struct timespec*)(void*)none, NULL), EFAULT);
  FAILS(poll((struct pollfd*)(void*)none, 1, 0), EFAULT);
  FAILS(poll((struct pollfd*)(void*)read_only, 1, 0), EFAULT);
  FAILS(sendmsg(socket(AF_INET, SOCK_DGRAM, 0), (const struct msghdr*)(void*)none, 0), EFAULT);
  const int s = socket(AF_INET, SOCK_STREAM, 0), d = socket(AF_INET, SOCK_DGRAM, 0);
  FAILS(connect(s, (const struct sockaddr*)(void*)none, sizeof(struct sockaddr_in)), EFAULT);
  FAILS(bind(d, (const struct sockaddr*)(void*)none, sizeof(struct sockaddr_in)), EFAULT);
  uint64_t value = 0;
  CHECK_EQUAL(read(count, &value, sizeof value), 8);
  CHECK_EQUAL(value, 5);
  CHECK_EQUAL(munmap(good, 3 * (size_t)page), 0);
  return succeed();
}
