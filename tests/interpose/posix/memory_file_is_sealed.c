// SPDX-License-Identifier: Apache-2.0
// memfd_create: a memory file with seals, which accumulate and refuse growth, shrinking and
// writing, also by mapping, until no more seals can be added.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char link[64], b[64];
  const int f = memfd_create("of memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(f >= 0);
  CHECK_EQUAL(fcntl(f, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(fcntl(f, F_GET_SEALS), 0);
  CHECK_EQUAL(ftruncate(f, 8192), 0);
  CHECK_EQUAL(fcntl(f, F_ADD_SEALS, F_SEAL_GROW), 0);
  FAILS(ftruncate(f, 8193), EPERM);
  FAILS(pwrite(f, "xy", 2, 8191) == 2 ? 0 : -1, EPERM);
  CHECK_EQUAL(fcntl(f, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  CHECK_EQUAL(fcntl(f, F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK);
  FAILS(ftruncate(f, 1), EPERM);
  char* m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  CHECK(m != MAP_FAILED);
  m[1] = 'm';
  CHECK_EQUAL(pread(f, b, 1, 1), 1);
  CHECK_EQUAL(b[0], 'm');
  FAILS(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
  CHECK_EQUAL(munmap(m, 8192), 0);
  CHECK_EQUAL(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), 0);
  FAILS(pwrite(f, "x", 1, 0), EPERM);
  CHECK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0) == MAP_FAILED);
  CHECK_EQUAL(errno, EPERM);
  m = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, f, 0);
  CHECK(m != MAP_FAILED && m[1] == 'm');
  FAILS(fcntl(f, F_ADD_SEALS, F_SEAL_GROW), EPERM);
  const int plain = memfd_create("", 0);
  CHECK_EQUAL(fcntl(plain, F_GET_SEALS), F_SEAL_SEAL);
  FAILS(memfd_create("x", 0x4000u), EINVAL);
  snprintf(link, sizeof link, "/proc/self/fd/%d", f);
  const ssize_t n = readlink(link, b, sizeof b - 1);
  CHECK(n > 0);
  b[n] = 0;
  CHECK_EQUAL(strcmp(b, "/memfd:of memory (deleted)"), 0);
  return succeed();
}
