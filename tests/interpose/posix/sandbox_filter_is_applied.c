// SPDX-License-Identifier: Apache-2.0
// A seccomp filter takes effect: errors, traps and kills, also for calls that a scheduler answers,
// in threads and processes that start later, through syscall(2) and through libc.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "../child.h"

#define ANSWER(number, verdict) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, (verdict))

static int install(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ANSWER(SYS_socket, SECCOMP_RET_ERRNO | EACCES),
      ANSWER(SYS_openat, SECCOMP_RET_ERRNO | EPERM),
      ANSWER(SYS_getppid, SECCOMP_RET_TRAP | 7),
      ANSWER(SYS_alarm, SECCOMP_RET_KILL_PROCESS),
      ANSWER(SYS_uname, SECCOMP_RET_KILL_PROCESS),
      // An argument decides: descriptor 77 is no good.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup2, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof code / sizeof code[0], code};
  CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void check_errors(void) {
  errno = 0;
  CHECK_EQUAL(socket(AF_INET, SOCK_STREAM, 0), -1);
  CHECK_EQUAL(errno, EACCES);
  CHECK_EQUAL(open("/dev/null", O_RDONLY), -1);
  CHECK_EQUAL(errno, EPERM);
  CHECK_EQUAL(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), -1);
  CHECK_EQUAL(errno, EACCES);
  CHECK_EQUAL(dup2(0, 77), -1);
  CHECK_EQUAL(errno, EXDEV);
  CHECK_EQUAL(dup2(0, 76), 76);
  CHECK_EQUAL(close(76), 0);
}

static void* in_thread(void* x) {
  check_errors();
  return x;
}

static volatile sig_atomic_t trapped;
static void note_trap(int signo, siginfo_t* info, void* context) {
  (void)context;
  CHECK_EQUAL(signo, SIGSYS);
  CHECK_EQUAL(info->si_errno, 7);
  trapped = info->si_syscall;
}

static int does(int what) {
  struct utsname name;
  if (what == 0) alarm(1);
  if (what == 1) uname(&name);
  if (what == 2) syscall(SYS_alarm, 1);
  if (what == 3) check_errors();
  return 4;
}

int main(void) {
  CHECK_EQUAL(prctl(PR_GET_SECCOMP), 0);
  CHECK_EQUAL(install(), 0);
  CHECK_EQUAL(prctl(PR_GET_SECCOMP), SECCOMP_MODE_FILTER);
  check_errors();
  struct sigaction action = {.sa_sigaction = note_trap, .sa_flags = SA_SIGINFO};
  CHECK_EQUAL(sigaction(SIGSYS, &action, NULL), 0);
  getppid();
  CHECK_EQUAL(trapped, SYS_getppid);
  pthread_t thread;
  CHECK_EQUAL(pthread_create(&thread, NULL, in_thread, NULL), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  CHECK(signal(SIGSYS, SIG_DFL) != SIG_ERR);
  for (int what = 0; what < 3; ++what) {
    const int status = status_of(start_process(does, what));
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(WTERMSIG(status), SIGSYS);
  }
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(does, 3))), 4);
  int ends[2];
  char byte = 'x';
  CHECK_EQUAL(pipe(ends), 0);
  CHECK_EQUAL(write(ends[1], &byte, 1), 1);
  CHECK_EQUAL(read(ends[0], &byte, 1), 1);
  return succeed();
}
