// SPDX-License-Identifier: Apache-2.0
// Pseudo-terminals have different names, each with the lowest free number; at the limit there is an
// error, and closing one makes room.
#include "../terminal.h"

#include <sys/resource.h>

enum { kLeast = 200, kMost = 5000 };

int main(void) {
  static int masters[kMost];
  char name[64], again[64];
  struct rlimit limit = {2048, 2048};
  setrlimit(RLIMIT_NOFILE, &limit);
  int n = 0;
  while (n < kMost && (masters[n] = posix_openpt(O_RDWR | O_NOCTTY)) >= 0) ++n;
  CHECK(n >= kLeast);
  CHECK(errno == ENOSPC || errno == EMFILE);
  CHECK_EQUAL(ptsname_r(masters[50], name, sizeof name), 0);
  for (int i = 0; i < n; ++i) {
    if (i == 50) continue;
    CHECK_EQUAL(ptsname_r(masters[i], again, sizeof again), 0);
    CHECK(strcmp(name, again) != 0);
  }
  close(masters[50]);
  masters[50] = posix_openpt(O_RDWR | O_NOCTTY);
  CHECK(masters[50] >= 0);
  for (int i = 0; i < n; ++i) CHECK_EQUAL(close(masters[i]), 0);
  return succeed();
}
