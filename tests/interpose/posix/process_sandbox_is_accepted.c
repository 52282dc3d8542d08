// SPDX-License-Identifier: Apache-2.0
// A program that sandboxes itself by a seccomp filter continues within it, and sees that it has
// one; filters that the kernel would refuse are refused.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

// No sockets, which Crane needs for a child.
static struct sock_filter no_sockets[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static const struct sock_fprog good = {4, no_sockets}, empty = {0, no_sockets};

static void* goes_on(void* x) {
  sleep_ms(1);
  return x;
}

static void by_prctl(void) {
  const struct rlimit no_files = {0, 0};  // as sshd: Crane cannot write its message
  CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &no_files), 0);
  CHECK_EQUAL(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), SECCOMP_MODE_DISABLED);
  CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0), -1);
  CHECK_EQUAL(errno, EFAULT);
  CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty, 0, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(prctl(PR_SET_SECCOMP, 77, &good, 0, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &good, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), SECCOMP_MODE_FILTER);
}

static void by_number(void) {
  CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQUAL(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), -1);
  CHECK_EQUAL(errno, EFAULT);
  CHECK_EQUAL(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &good), 0);
}

int main(void) {
  void (*const ways[])(void) = {by_prctl, by_number};
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ways[i]();
      join(start(goes_on, NULL));
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(0);
      int ended = 0;
      CHECK_EQUAL(waitpid(grandchild, &ended, 0), grandchild);
      _exit(ended == 0 ? 5 : 6);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  }
  return succeed();
}
