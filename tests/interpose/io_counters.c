// SPDX-License-Identifier: Apache-2.0
// eventfd, timerfd, signalfd.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAILS(call, error) ((call) < 0 && errno == (error))

static void show(const char* what, ssize_t n, uint64_t v) {
  printf("%s %zd %d\n", what, n, (int)v);
}

static void events(void) {
  uint64_t v = 0;
  const int e = eventfd(3, EFD_NONBLOCK);
  ssize_t n = read(e, &v, 8);
  show("read", n, v);
  printf("empty %d\n", FAILS(read(e, &v, 8), EAGAIN));
  v = 5;
  write(e, &v, 8);
  write(e, &v, 8);
  struct pollfd f = {e, POLLIN | POLLOUT, 0};
  const int ready = poll(&f, 1, 0);
  printf("poll %d %x\n", ready, f.revents);
  n = read(e, &v, 8);
  show("sum", n, v);
  v = UINT64_MAX;
  printf("max %d\n", FAILS(write(e, &v, 8), EINVAL));
  printf("short %d\n", FAILS(read(e, &v, 4), EINVAL));
  close(e);
  const int s = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
  int taken = 0;
  while (read(s, &v, 8) == 8 && v == 1) ++taken;
  printf("semaphore %d\n", taken);
  close(s);
  const int b = eventfd(0, 0);
  if (fork() == 0) {
    v = 42;
    write(b, &v, 8);
    _exit(0);
  }
  n = read(b, &v, 8);
  show("from child", n, v);
  wait(NULL);
  close(b);
}

static void timers(void) {
  const int t = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct itimerspec spec = {{0, 20000000}, {0, 20000000}}, now;
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  timerfd_settime(t, 0, &spec, NULL);
  uint64_t expired = 0, sum = 0;
  for (; sum < 3; sum += expired) {
    if (read(t, &expired, 8) != 8) return;
  }
  clock_gettime(CLOCK_MONOTONIC, &after);
  const long ms =
      (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
  printf("in time %d\n", ms >= 59 && ms < 5000);
  timerfd_gettime(t, &now);
  printf("interval %ld left %d\n", now.it_interval.tv_nsec, now.it_value.tv_nsec > 0);
  spec = (struct itimerspec){{0, 0}, {0, 0}};
  timerfd_settime(t, 0, &spec, &now);
  timerfd_gettime(t, &now);
  printf("off %ld\n", now.it_value.tv_nsec);
  struct pollfd f = {t, POLLIN, 0};
  printf("poll %d\n", poll(&f, 1, 0));
  clock_gettime(CLOCK_REALTIME, &after);
  const int a = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  spec.it_value = after;
  spec.it_value.tv_sec -= 5;
  timerfd_settime(a, TFD_TIMER_ABSTIME, &spec, NULL);
  f.fd = a;
  const int ready = poll(&f, 1, 1000);
  printf("past %d %x\n", ready, f.revents);
  close(a);
  close(t);
}

static void signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int s = signalfd(-1, &set, SFD_CLOEXEC);
  struct pollfd f = {s, POLLIN, 0};
  printf("none %d\n", poll(&f, 1, 0));
  kill(getpid(), SIGUSR1);
  printf("poll %d\n", poll(&f, 1, 1000));
  struct signalfd_siginfo info;
  ssize_t n = read(s, &info, sizeof info);
  printf("read %d %d\n", n == sizeof info, info.ssi_signo == SIGUSR1);
  if (fork() == 0) _exit(0);
  n = read(s, &info, sizeof info);
  printf("child %d %d\n", n == sizeof info, info.ssi_signo == SIGCHLD);
  wait(NULL);
  close(s);
}

int main(void) {
  events();
  timers();
  signals();
  printf("EXIT-SUCCESS\n");
  return 0;
}
