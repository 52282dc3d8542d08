// SPDX-License-Identifier: Apache-2.0
// RLIMIT_FSIZE, with SIGXFSZ ignored: a write up to the limit is shortened, one beyond it fails
// with EFBIG, and so does ftruncate.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>

#include "../small.h"

static int status_of_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit none = {0, 0}, r = {100, 100};
    static char b[200];
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_FSIZE, &r) != 0) _exit(1);
    FILE* const t = tmpfile();
    if (t == NULL) _exit(6);
    const int f = fileno(t);
    if (write(f, b, 200) != 100) _exit(2);
    if (write(f, b, 1) != -1 || errno != EFBIG) _exit(3);
    if (ftruncate(f, 101) != -1 || errno != EFBIG) _exit(4);
    _exit(ftruncate(f, 50) == 0 ? 42 : 5);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  return status;
}

int main(void) {
  CHECK_EQUAL(status_of_child(), 42 << 8);
  return succeed();
}
