// SPDX-License-Identifier: Apache-2.0
// native: no
// Changes of the machine are refused as without the privilege, without a call of the kernel: names,
// clock, boot, modules, swap, accounting, quotas, ports, the kernel's log. Reading is permitted.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acct.h>
#include <sys/io.h>
#include <sys/klog.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../small.h"

static int denied(long result) { return result == -1 && errno == EPERM; }

int main(void) {
  struct utsname before, after;
  CHECK_EQUAL(uname(&before), 0);
  // Arguments that have no effect if the kernel sees them.
  CHECK(denied(sethostname(before.nodename, strlen(before.nodename))));
  CHECK(denied(setdomainname(before.domainname, strlen(before.domainname))));
  CHECK(denied(syscall(SYS_reboot, 0, 0, 0, 0)));
  CHECK(denied(syscall(SYS_kexec_load, 0L, 0L, NULL, ~0UL)));
  CHECK(denied(syscall(SYS_kexec_file_load, -1, -1, 0L, NULL, 0UL)));
  CHECK(denied(syscall(SYS_init_module, NULL, 0UL, "")));
  CHECK(denied(syscall(SYS_finit_module, -1, "", 0)));
  CHECK(denied(syscall(SYS_delete_module, "crane-none", 0)));
  CHECK(denied(swapon("/crane-none", 0)));
  CHECK(denied(swapoff("/crane-none")));
  CHECK(denied(acct("/crane-none")));
  CHECK(denied(syscall(SYS_quotactl, 0, NULL, 0, NULL)));
  CHECK(denied(syscall(SYS_quotactl_fd, -1, 0, 0, NULL)));
  CHECK(denied(iopl(0)));
  CHECK(denied(ioperm(0x80, 1, 0)));
  CHECK(denied(klogctl(8, NULL, -1)));  // the console's level, an invalid one
  CHECK(klogctl(10, NULL, 0) > 0 || errno == EPERM);
  struct timex t;
  memset(&t, 0, sizeof t);
  CHECK(adjtimex(&t) >= 0);  // only reads
  t.modes = ADJ_TICK;        // unchanged
  CHECK(denied(adjtimex(&t)));
  CHECK(syscall(SYS_add_key, "user", "crane", "x", 1UL, 0) == -1 && errno == ENOSYS);
  CHECK(syscall(SYS_keyctl, 0, 0, 0, 0, 0) == -1 && errno == ENOSYS);
  CHECK_EQUAL(uname(&after), 0);
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  return succeed();
}
