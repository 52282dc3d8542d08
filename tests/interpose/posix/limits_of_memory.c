// SPDX-License-Identifier: Apache-2.0
// RLIMIT_AS refuses a mapping that is too large with ENOMEM, and so does malloc; the limit can be
// raised again up to the hard one.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    struct rlimit r;
    const size_t much = (size_t)8 << 30;
    if (getrlimit(RLIMIT_AS, &r) != 0) _exit(1);
    r.rlim_cur = (rlim_t)4 << 30;
    if (setrlimit(RLIMIT_AS, &r) != 0) _exit(2);
    void* p = mmap(NULL, much, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED || errno != ENOMEM) _exit(3);
    void* volatile m = malloc(much);
    if (m != NULL || errno != ENOMEM) _exit(4);
    m = malloc(1000);
    if (m == NULL) _exit(5);
    r.rlim_cur = r.rlim_max;
    if (setrlimit(RLIMIT_AS, &r) != 0) _exit(6);
    p = mmap(NULL, much, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    _exit(p != MAP_FAILED || r.rlim_max != RLIM_INFINITY ? 42 : 7);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  return succeed();
}
