// SPDX-License-Identifier: Apache-2.0
// A stream's lock is recursive and excludes other threads while it is held; ftrylockfile reports
// that.
#define _GNU_SOURCE
#include <stdio_ext.h>

#include "../small.h"

static FILE* f;
static void* attempt(void* unused) {
  (void)unused;
  const long busy = ftrylockfile(f) != 0;
  if (!busy) funlockfile(f);
  return (void*)busy;
}

int main(void) {
  f = tmpfile();
  CHECK_EQUAL(elsewhere(attempt, NULL), 0);
  flockfile(f);
  CHECK_EQUAL(ftrylockfile(f), 0);
  CHECK_EQUAL(elsewhere(attempt, NULL), 1);
  funlockfile(f);
  CHECK_EQUAL(elsewhere(attempt, NULL), 1);
  putc_unlocked('x', f);
  fputs("y", f);
  funlockfile(f);
  CHECK_EQUAL(elsewhere(attempt, NULL), 0);
  CHECK_EQUAL(__fsetlocking(f, FSETLOCKING_QUERY), FSETLOCKING_INTERNAL);
  CHECK_EQUAL(ftell(f), 2);
  return succeed();
}
