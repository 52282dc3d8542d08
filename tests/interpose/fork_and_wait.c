// SPDX-License-Identifier: Apache-2.0
// Processes: fork in a process with threads, atfork handlers, wait in every form, exit statuses,
// death by a signal, orphans, process groups, shared mutexes (traps 28, 32), a robust owner's
// death.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int prepared, in_parent, in_child;
static void prepare(void) {
  pthread_mutex_lock(&mutex);
  ++prepared;
}
static void parent(void) {
  ++in_parent;
  pthread_mutex_unlock(&mutex);
}
static void child(void) {
  ++in_child;
  pthread_mutex_unlock(&mutex);
}

static volatile int stop;
static void* work(void* x) {
  while (!stop) {
    pthread_mutex_lock(&mutex);
    sched_yield();
    pthread_mutex_unlock(&mutex);
    sched_yield();
  }
  return x;
}

static void* nothing(void* x) { return x; }

static pid_t spawn(int code) {
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) _exit(code);
  return pid;
}

static void test_statuses(void) {
  int status;
  for (int code = 0; code < 20; ++code) {
    const pid_t pid = spawn(code);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), code);
  }
  pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  CHECK_EQUAL(waitpid(pid, &status, WNOHANG), 0);
  CHECK_EQUAL(kill(pid, SIGTERM), 0);
  CHECK_EQUAL(waitpid(pid, &status, 0), pid);
  CHECK(WIFSIGNALED(status));
  CHECK_EQUAL(WTERMSIG(status), SIGTERM);
  CHECK(kill(pid, 0) == -1 && errno == ESRCH);
  pid = fork();
  if (pid == 0) {
    signal(SIGTERM, SIG_IGN);
    for (;;) sleep(1000);
  }
  kill(pid, SIGKILL);
  CHECK_EQUAL(wait(&status), pid);
  CHECK_EQUAL(WTERMSIG(status), SIGKILL);
  pid = fork();
  if (pid == 0) abort();
  siginfo_t info;
  CHECK_EQUAL(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
  CHECK_EQUAL(info.si_pid, pid);
  struct rusage usage;
  CHECK_EQUAL(wait4(pid, &status, 0, &usage), pid);
  CHECK_EQUAL(WTERMSIG(status), SIGABRT);
  pid = fork();
  if (pid == 0) *(volatile int*)8 = 1;
  CHECK_EQUAL(waitpid(-1, &status, 0), pid);
  CHECK_EQUAL(WTERMSIG(status), SIGSEGV);
  CHECK(wait(&status) == -1 && errno == ECHILD);
  printf("statuses\n");
}

static void test_groups(void) {
  int status;
  pid_t first = fork();
  if (first == 0) {
    for (;;) pause();
  }
  setpgid(first, first);
  pid_t second = fork();
  if (second == 0) {
    for (;;) pause();
  }
  setpgid(second, first);
  CHECK_EQUAL(waitpid(-first, &status, WNOHANG), 0);
  CHECK(waitpid(0, &status, WNOHANG) == -1 && errno == ECHILD);
  CHECK_EQUAL(killpg(first, SIGUSR1), 0);
  CHECK(waitpid(-first, &status, 0) > 0);
  CHECK_EQUAL(WTERMSIG(status), SIGUSR1);
  CHECK(waitpid(-first, &status, 0) > 0);
  printf("groups\n");
}

static void test_threads(void) {
  pthread_atfork(prepare, parent, child);
  pthread_t t[3];
  for (int i = 0; i < 3; ++i) pthread_create(&t[i], NULL, work, NULL);
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      CHECK_EQUAL(in_child, 1);
      CHECK_EQUAL(pthread_mutex_trylock(&mutex), 0);
      pthread_t own;
      CHECK_EQUAL(pthread_create(&own, NULL, nothing, NULL), 0);
      CHECK_EQUAL(pthread_join(own, NULL), 0);
      _exit(7);
    }
    int status;
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK_EQUAL(WEXITSTATUS(status), 7);
  }
  CHECK_EQUAL(prepared, 20);
  CHECK_EQUAL(in_parent, 20);
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(t[i], NULL);
  printf("threads\n");
}

struct Shared {
  pthread_mutex_t plain, robust;
  pthread_cond_t changed;
  int turn, sum;
};

static void test_shared(void) {
  struct Shared* s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t m;
  pthread_mutexattr_init(&m);
  pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&s->plain, &m);
  pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&s->robust, &m);
  pthread_condattr_t c;
  pthread_condattr_init(&c);
  pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&s->changed, &c);
  for (int me = 0; me < 3; ++me) {
    const pid_t pid = fork();
    if (pid != 0) continue;
    for (int i = 0; i < 30; ++i) {
      pthread_mutex_lock(&s->plain);
      while (s->turn % 3 != me) pthread_cond_wait(&s->changed, &s->plain);
      ++s->turn;
      s->sum += me;
      pthread_cond_broadcast(&s->changed);
      pthread_mutex_unlock(&s->plain);
    }
    _exit(0);
  }
  for (int i = 0; i < 3; ++i) CHECK(wait(NULL) > 0);
  CHECK_EQUAL(s->turn, 90);
  CHECK_EQUAL(s->sum, 90);

  const pid_t pid = fork();
  if (pid == 0) {
    pthread_mutex_lock(&s->robust);
    s->turn = 1;
    const struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
    _exit(0);
  }
  while (pthread_mutex_trylock(&s->robust) == 0) {
    pthread_mutex_unlock(&s->robust);
    if (s->turn == 1) break;
    sched_yield();
  }
  CHECK_EQUAL(pthread_mutex_lock(&s->robust), EOWNERDEAD);
  CHECK_EQUAL(pthread_mutex_consistent(&s->robust), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&s->robust), 0);
  CHECK_EQUAL(pthread_mutex_lock(&s->robust), 0);
  CHECK_EQUAL(waitpid(pid, NULL, 0), pid);
  printf("shared\n");
}

static int children;
static void on_child(int s) {
  (void)s;
  ++children;
}

static void test_sigchld(void) {
  struct sigaction a = {0};
  a.sa_handler = on_child;
  sigaction(SIGCHLD, &a, NULL);
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  sigprocmask(SIG_BLOCK, &block, &old);
  const pid_t pid = spawn(3);
  while (children == 0) sigsuspend(&old);
  sigprocmask(SIG_SETMASK, &old, NULL);
  int status;
  CHECK_EQUAL(waitpid(pid, &status, WNOHANG), pid);
  CHECK_EQUAL(WEXITSTATUS(status), 3);
  signal(SIGCHLD, SIG_IGN);
  spawn(0);
  CHECK(wait(&status) == -1 && errno == ECHILD);
  signal(SIGCHLD, SIG_DFL);
  printf("SIGCHLD\n");
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  test_statuses();
  test_groups();
  test_threads();
  test_shared();
  test_sigchld();
  return succeed();
}
