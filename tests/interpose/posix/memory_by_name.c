// SPDX-License-Identifier: Apache-2.0
// shm_open: named shared memory, seen by a child that opens it again, removed by shm_unlink; its
// errors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char name[80];
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  shm_unlink(name);
  FAILS(shm_open(name, O_RDWR, 0), ENOENT);
  const int f = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  CHECK(f >= 0);
  CHECK_EQUAL(fcntl(f, F_GETFD), FD_CLOEXEC);
  FAILS(shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600), EEXIST);
  CHECK_EQUAL(ftruncate(f, 4096), 0);
  int* const m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  CHECK(m != MAP_FAILED);
  m[0] = 41;
  const pid_t child = fork();
  if (child == 0) {
    const int g = shm_open(name, O_RDWR, 0);
    int* const n = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, g, 0);
    if (g < 0 || n == MAP_FAILED || n[0] != 41) _exit(1);
    n[0] = 42;
    _exit(0);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(m[0], 42);
  const int r = shm_open(name, O_RDONLY, 0);
  FAILS(ftruncate(r, 1), EINVAL);
  CHECK_EQUAL(shm_unlink(name), 0);
  FAILS(shm_unlink(name), ENOENT);
  FAILS(shm_open("/a/b", O_CREAT | O_RDWR, 0600), EINVAL);
  CHECK_EQUAL(m[0], 42);
  return succeed();
}
