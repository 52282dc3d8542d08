// SPDX-License-Identifier: Apache-2.0
// seccomp reports the available actions, and refuses invalid programs and operations.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  uint32_t action = SECCOMP_RET_ERRNO;
  CHECK_EQUAL(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action), 0);
  action = 0x12340000;
  FAILS(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action), EOPNOTSUPP);
  FAILS(syscall(SYS_seccomp, 77, 0, NULL), EINVAL);
  FAILS(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL), EINVAL);
  FAILS(prctl(PR_SET_SECCOMP, 77, 0, 0, 0), EINVAL);
  CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  FAILS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), EFAULT);
  struct sock_filter code = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
  const struct sock_fprog program = {0, &code};
  FAILS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), EINVAL);
  CHECK_EQUAL(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
  return succeed();
}
