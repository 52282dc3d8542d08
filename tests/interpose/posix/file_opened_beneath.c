// SPDX-License-Identifier: Apache-2.0
// openat2, where it exists: RESOLVE_BENEATH refuses paths that leave the directory,
// RESOLVE_NO_SYMLINKS refuses links; unknown flags and a short structure fail with EINVAL.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "../small.h"

static long open_how(int d, const char* name, uint64_t flags, uint64_t resolve) {
  struct open_how how = {flags, 0, resolve};
  return syscall(SYS_openat2, d, name, &how, sizeof how);
}

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char dir[] = "/tmp/beneathXXXXXX";
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY);
  CHECK_EQUAL(close(openat(d, "f", O_CREAT | O_RDWR, 0600)), 0);
  CHECK_EQUAL(symlinkat("f", d, "l"), 0);
  CHECK_EQUAL(symlinkat("/etc", d, "out"), 0);
  const long f = open_how(d, "f", O_RDONLY, RESOLVE_BENEATH);
  if (f >= 0 || errno != ENOSYS) {
    CHECK(f >= 0);
    CHECK_EQUAL(close((int)f), 0);
    FAILS(open_how(d, "..", O_RDONLY, RESOLVE_BENEATH), EXDEV);
    FAILS(open_how(d, "/etc", O_RDONLY, RESOLVE_BENEATH), EXDEV);
    FAILS(open_how(d, "out", O_RDONLY, RESOLVE_BENEATH), EXDEV);
    CHECK(open_how(d, "l", O_RDONLY, RESOLVE_BENEATH) >= 0);
    FAILS(open_how(d, "l", O_RDONLY, RESOLVE_NO_SYMLINKS), ELOOP);
    CHECK(open_how(d, "/f", O_RDONLY, RESOLVE_IN_ROOT) >= 0);
    FAILS(open_how(d, "f", O_RDONLY, 1ull << 40), EINVAL);
    FAILS(open_how(d, "f", 1ull << 40, 0), EINVAL);
    struct open_how how = {O_RDONLY, 0, 0};
    FAILS(syscall(SYS_openat2, d, "f", &how, 8), EINVAL);
  }
  CHECK_EQUAL(unlinkat(d, "f", 0), 0);
  CHECK_EQUAL(unlinkat(d, "l", 0), 0);
  CHECK_EQUAL(unlinkat(d, "out", 0), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
