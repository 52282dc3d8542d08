// SPDX-License-Identifier: Apache-2.0
// process_vm_readv and process_vm_writev reach the memory of a child, in parts; their errors.
#define _GNU_SOURCE
#include <sys/uio.h>
#include <sys/wait.h>

#include "../small.h"

static volatile char there[8] = "parent";

int main(void) {
  int up[2], down[2];
  char b[8];
  CHECK_EQUAL(pipe(up), 0);
  CHECK_EQUAL(pipe(down), 0);
  const pid_t child = fork();
  if (child == 0) {
    there[0] = 'P';
    if (write(up[1], "x", 1) != 1 || read(down[0], b, 1) != 1) _exit(1);
    _exit(there[1] == 'Q' ? 42 : 2);
  }
  CHECK_EQUAL(read(up[0], b, 1), 1);
  const struct iovec here[] = {{b, 2}, {b + 2, 4}}, far[] = {{(void*)there, 6}};
  CHECK_EQUAL(process_vm_readv(child, here, 2, far, 1, 0), 6);
  CHECK_EQUAL(memcmp(b, "Parent", 6), 0);
  CHECK_EQUAL(there[0], 'p');
  const struct iovec q[] = {{(void*)"Q", 1}}, second[] = {{(void*)(there + 1), 1}};
  CHECK_EQUAL(process_vm_writev(child, q, 1, second, 1, 0), 1);
  const struct iovec bad[] = {{(void*)8, 1}};
  CHECK(process_vm_readv(child, here, 1, bad, 1, 0) == -1 && errno == EFAULT);
  CHECK(process_vm_readv(child, here, 1, far, 1, 1) == -1 && errno == EINVAL);
  CHECK_EQUAL(write(down[1], "x", 1), 1);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  CHECK(process_vm_readv(child, here, 1, far, 1, 0) == -1 && errno == ESRCH);
  return succeed();
}
