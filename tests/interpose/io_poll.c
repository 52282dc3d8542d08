// SPDX-License-Identifier: Apache-2.0
// poll, ppoll, select, pselect: readiness, time-outs, signals, bad descriptors, several waiters.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FAILS(call, error) ((call) < 0 && errno == (error))

static volatile sig_atomic_t alarms;
static void on_alarm(int s) { alarms += s == SIGALRM; }

static void polls(void) {
  int p[2];
  pipe(p);
  const int file = open("/proc/self/exe", O_RDONLY);
  struct pollfd f[4] = {{p[0], POLLIN, 0}, {p[1], POLLOUT, 0}, {-1, POLLIN, 0}, {file, POLLIN, 0}};
  printf("poll %d", poll(f, 4, 0));
  for (int i = 0; i < 4; ++i) printf(" %x", f[i].revents);
  printf("\n");
  struct pollfd bad = {500, POLLIN, 0};
  int n = poll(&bad, 1, 0);
  printf("bad %d %x\n", n, bad.revents);
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  printf("time-out %d\n", poll(f, 1, 30));
  clock_gettime(CLOCK_MONOTONIC, &b);
  const long ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
  printf("waited %d\n", ms >= 29 && ms < 5000);
  printf("sleep %d\n", poll(NULL, 0, 1));
  close(file);
  close(p[0]);
  close(p[1]);
}

static void selects(void) {
  int p[2];
  pipe(p);
  fd_set r, w;
  FD_ZERO(&r);
  FD_ZERO(&w);
  FD_SET(p[0], &r);
  FD_SET(p[1], &w);
  const int top = (p[0] > p[1] ? p[0] : p[1]) + 1;
  int n = select(top, &r, &w, NULL, NULL);
  printf("select %d %d %d\n", n, FD_ISSET(p[0], &r) != 0, FD_ISSET(p[1], &w) != 0);
  write(p[1], "x", 1);
  FD_SET(p[0], &r);
  struct timespec t = {1, 0};
  n = pselect(top, &r, NULL, NULL, &t, NULL);
  printf("pselect %d %d\n", n, FD_ISSET(p[0], &r) != 0);
  char c;
  read(p[0], &c, 1);
  FD_SET(p[0], &r);
  struct timeval v = {0, 20000};
  n = select(top, &r, NULL, NULL, &v);
  printf("time-out %d %d %ld\n", n, FD_ISSET(p[0], &r) != 0, (long)v.tv_usec);
  FD_ZERO(&r);
  FD_SET(50, &r);
  printf("bad %d\n", FAILS(select(51, &r, NULL, NULL, &v), EBADF));
  close(p[0]);
  close(p[1]);
}

static void interrupted(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = on_alarm;
  a.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &a, NULL);
  struct itimerval t = {{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &t, NULL);
  int failed = FAILS(poll(NULL, 0, -1), EINTR);
  printf("poll %d alarms %d\n", failed, (int)alarms);
  sigset_t block, before;
  sigemptyset(&block);
  sigaddset(&block, SIGALRM);
  sigprocmask(SIG_BLOCK, &block, &before);
  raise(SIGALRM);
  printf("blocked %d", poll(NULL, 0, 5));
  printf(" alarms %d\n", (int)alarms);
  failed = FAILS(ppoll(NULL, 0, NULL, &before), EINTR);
  printf("ppoll %d alarms %d\n", failed, (int)alarms);
  int p[2];
  char c;
  pipe(p);
  sigprocmask(SIG_SETMASK, &before, NULL);
  a.sa_flags = 0;
  sigaction(SIGALRM, &a, NULL);
  setitimer(ITIMER_REAL, &t, NULL);
  failed = FAILS(read(p[0], &c, 1), EINTR);
  printf("read %d alarms %d\n", failed, (int)alarms);
  close(p[0]);
  close(p[1]);
}

static int pipes[3][2];
static void* wait_for_three(void* x) {
  (void)x;
  struct pollfd f[3];
  int seen = 0;
  for (int i = 0; i < 3; ++i) f[i] = (struct pollfd){pipes[i][0], POLLIN, 0};
  while (seen != 7) {
    if (poll(f, 3, -1) <= 0) return NULL;
    for (int i = 0; i < 3; ++i) {
      char c;
      if ((f[i].revents & POLLIN) != 0 && read(f[i].fd, &c, 1) == 1) seen |= 1 << (c - '0');
    }
  }
  return (void*)1;
}

static void threads(void) {
  pthread_t t;
  for (int i = 0; i < 3; ++i) pipe(pipes[i]);
  pthread_create(&t, NULL, wait_for_three, NULL);
  for (int i = 2; i >= 0; --i) {
    const char c = (char)('0' + i);
    usleep(500);
    write(pipes[i][1], &c, 1);
  }
  void* ok = NULL;
  pthread_join(t, &ok);
  printf("three %d\n", ok != NULL);
}

int main(void) {
  polls();
  selects();
  interrupted();
  threads();
  printf("EXIT-SUCCESS\n");
  return 0;
}
