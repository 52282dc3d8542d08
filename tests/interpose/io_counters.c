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

static void events(void) {
  uint64_t v = 0;
  const int e = eventfd(3, EFD_NONBLOCK);
  printf("read %zd %d\n", read(e, &v, 8), (int)v);
  printf("empty %zd %d\n", read(e, &v, 8), errno == EAGAIN);
  v = 5;
  write(e, &v, 8);
  write(e, &v, 8);
  struct pollfd f = {e, POLLIN | POLLOUT, 0};
  printf("poll %d %x\n", poll(&f, 1, 0), f.revents);
  printf("sum %zd %d\n", read(e, &v, 8), (int)v);
  v = UINT64_MAX;
  printf("max %zd %d\n", write(e, &v, 8), errno == EINVAL);
  printf("short %zd %d\n", read(e, &v, 4), errno == EINVAL);
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
  printf("from child %zd %d\n", read(b, &v, 8), (int)v);
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
  while (sum < 3) {
    printf("read %zd\n", read(t, &expired, 8) > 0 ? (ssize_t)1 : (ssize_t)0);
    sum += expired;
    if (sum >= 3) break;
    sum = 3;
  }
  clock_gettime(CLOCK_MONOTONIC, &after);
  const long ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
  printf("in time %d\n", ms >= 19 && ms < 2000);
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
  printf("past %d %x\n", poll(&f, 1, 1000), f.revents);
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
  printf("read %d %d\n", read(s, &info, sizeof info) == sizeof info, info.ssi_signo == SIGUSR1);
  if (fork() == 0) _exit(0);
  printf("child %d %d\n", read(s, &info, sizeof info) == sizeof info, info.ssi_signo == SIGCHLD);
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
