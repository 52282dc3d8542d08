// SPDX-License-Identifier: Apache-2.0
// capget and capset through syscall(2): dropped capabilities are gone and cannot be regained; an
// unknown version is answered with the known one.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct d[2], e[2];
  CHECK_EQUAL(syscall(SYS_capget, &h, d), 0);
  CHECK_EQUAL(d[0].effective & ~d[0].permitted, 0);
  if (geteuid() != 0) {
    CHECK_EQUAL(d[0].effective, 0);
    d[0].permitted = d[0].effective = 1;
    CHECK(syscall(SYS_capset, &h, d) == -1 && errno == EPERM);
  }
  const pid_t child = fork();
  if (child == 0) {
    memset(d, 0, sizeof d);
    if (syscall(SYS_capset, &h, d) != 0) _exit(1);
    if (syscall(SYS_capget, &h, e) != 0 || memcmp(d, e, sizeof d) != 0) _exit(2);
    d[0].permitted = d[0].effective = 1u << CAP_CHOWN;
    if (syscall(SYS_capset, &h, d) != -1 || errno != EPERM) _exit(3);
    _exit(chroot("/") == -1 && errno == EPERM ? 42 : 4);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  h.version = 12345;
  CHECK(syscall(SYS_capget, &h, d) == -1 && errno == EINVAL);
  CHECK_EQUAL(h.version, _LINUX_CAPABILITY_VERSION_3);
  h.pid = -1;
  CHECK(syscall(SYS_capget, &h, d) == -1 && errno == EINVAL);
  return succeed();
}
