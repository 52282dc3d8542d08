// SPDX-License-Identifier: Apache-2.0
// A seccomp filter ends a process that makes code writable, requests a barrier, or returns from a
// handler: after it is installed the counter is read as before.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tsc.h"

static struct sock_filter no_code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static const struct sock_fprog filter = {6, no_code};

static __attribute__((noipa)) uint64_t read_before(void) { return __rdtsc(); }
static __attribute__((noipa)) uint64_t read_behind(void) { return __rdtsc(); }

static void read_often(uint64_t (*read)(void)) {
  uint64_t last = 0;
  for (int i = 0; i < READS; ++i) {
    const uint64_t now = read();
    CHECK(now > last);
    last = now;
  }
}

int main(void) {
  read_often(read_before);
  CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
  read_often(read_before);
  read_often(read_behind);
  return succeed();
}
