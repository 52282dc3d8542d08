// SPDX-License-Identifier: Apache-2.0
// Extended attributes, where the file system has them: set, replaced, listed and removed, and the
// errors of each.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/xattr.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char name[] = "/tmp/attrXXXXXX", b[256];
  const int f = mkstemp(name);
  if (fsetxattr(f, "user.one", "abc", 3, XATTR_CREATE) != 0) {
    CHECK_EQUAL(errno, EOPNOTSUPP);
  } else {
    FAILS(fsetxattr(f, "user.one", "x", 1, XATTR_CREATE), EEXIST);
    FAILS(fsetxattr(f, "user.two", "x", 1, XATTR_REPLACE), ENODATA);
    CHECK_EQUAL(getxattr(name, "user.one", b, sizeof b), 3);
    CHECK_EQUAL(memcmp(b, "abc", 3), 0);
    CHECK_EQUAL(getxattr(name, "user.one", NULL, 0), 3);
    FAILS(getxattr(name, "user.one", b, 2), ERANGE);
    FAILS(getxattr(name, "user.two", b, sizeof b), ENODATA);
    CHECK_EQUAL(setxattr(name, "user.one", "", 0, XATTR_REPLACE), 0);
    CHECK_EQUAL(fgetxattr(f, "user.one", b, sizeof b), 0);
    const ssize_t n = listxattr(name, b, sizeof b);
    CHECK(n >= 9 && memmem(b, (size_t)n, "user.one", 9) != NULL);
    CHECK_EQUAL(removexattr(name, "user.one"), 0);
    FAILS(fremovexattr(f, "user.one"), ENODATA);
  }
  FAILS(fsetxattr(f, "nonsense", "x", 1, 0), EOPNOTSUPP);
  CHECK_EQUAL(unlink(name), 0);
  FAILS(getxattr(name, "user.one", b, sizeof b), ENOENT);
  return succeed();
}
