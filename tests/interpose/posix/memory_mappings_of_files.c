// SPDX-License-Identifier: Apache-2.0
// A shared mapping writes the file and sees writes to it, a private one keeps its own copy; the
// errors of mmap and msync.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "../small.h"

static void* map(int how, int flags, int fd, off_t at) {
  return mmap(NULL, 8192, how, flags, fd, at);
}
#define REFUSED(call, error) CHECK((call) == MAP_FAILED && errno == (error))

int main(void) {
  char name[] = "/tmp/mappedXXXXXX", b[4];
  const int f = mkstemp(name), r = open(name, O_RDONLY), w = open(name, O_WRONLY);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(ftruncate(f, 8192), 0);
  const int rw = PROT_READ | PROT_WRITE;
  char* const shared = map(rw, MAP_SHARED, f, 0);
  char* const own = map(rw, MAP_PRIVATE, r, 0);
  CHECK(shared != MAP_FAILED && own != MAP_FAILED);
  shared[5000] = 's';
  CHECK_EQUAL(pread(r, b, 1, 5000), 1);
  CHECK_EQUAL(b[0], 's');
  CHECK_EQUAL(own[5000], 's');
  CHECK_EQUAL(pwrite(w, "w", 1, 10), 1);
  CHECK_EQUAL(shared[10], 'w');
  own[10] = 'p';
  CHECK_EQUAL(shared[10], 'w');
  CHECK_EQUAL(msync(shared, 8192, MS_SYNC | MS_INVALIDATE), 0);
  CHECK_EQUAL(msync(shared, 4096, MS_ASYNC), 0);
  CHECK(msync(shared, 4096, MS_ASYNC | MS_SYNC) == -1 && errno == EINVAL);
  CHECK(msync(shared + 1, 4096, MS_SYNC) == -1 && errno == EINVAL);
  REFUSED(map(rw, MAP_SHARED, r, 0), EACCES);
  REFUSED(map(PROT_READ, MAP_PRIVATE, w, 0), EACCES);
  REFUSED(map(PROT_READ, MAP_SHARED, f, 1), EINVAL);
  REFUSED(map(PROT_READ, MAP_SHARED, -1, 0), EBADF);
  REFUSED(map(PROT_READ, 0, f, 0), EINVAL);
  REFUSED(mmap(NULL, 0, PROT_READ, MAP_SHARED, f, 0), EINVAL);
  CHECK_EQUAL(munmap(shared, 4096), 0);
  CHECK(msync(shared, 8192, MS_SYNC) == -1 && errno == ENOMEM);
  CHECK_EQUAL(shared[5000], 's');
  CHECK_EQUAL(munmap(shared + 4096, 4096), 0);
  CHECK(munmap(shared + 1, 4096) == -1 && errno == EINVAL);
  CHECK_EQUAL(close(f), 0);
  CHECK_EQUAL(own[10], 'p');
  return succeed();
}
