// SPDX-License-Identifier: Apache-2.0
// epoll: level and edge, one-shot, modify, delete, errors, nesting, order and rotation, time-outs.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int add(int ep, int op, int fd, uint32_t events, uint64_t data) {
  struct epoll_event e = {.events = events, .data.u64 = data};
  return epoll_ctl(ep, op, fd, &e) == 0 ? 0 : errno;
}

static void show(const char* what, int ep, int max) {
  struct epoll_event e[8];
  const int n = epoll_wait(ep, e, max, 0);
  printf("%s: %d", what, n);
  for (int i = 0; i < n; ++i) printf(" %x/%d", e[i].events, (int)e[i].data.u64);
  printf("\n");
}

static void basic(void) {
  int p[2];
  char b[8];
  pipe(p);
  const int ep = epoll_create1(EPOLL_CLOEXEC);
  printf("add %d again %d missing %d self %d\n", add(ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 1),
         add(ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 1) == EEXIST,
         add(ep, EPOLL_CTL_MOD, p[1], EPOLLIN, 1) == ENOENT,
         add(ep, EPOLL_CTL_ADD, ep, EPOLLIN, 1) == EINVAL);
  const int file = open("/proc/self/exe", O_RDONLY);
  printf("file %d bad %d\n", add(ep, EPOLL_CTL_ADD, file, EPOLLIN, 1) == EPERM,
         add(ep, EPOLL_CTL_ADD, 999, EPOLLIN, 1) == EBADF);
  close(file);
  show("idle", ep, 8);
  write(p[1], "ab", 2);
  show("level", ep, 8);
  show("level again", ep, 8);
  add(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLET, 2);
  show("edge", ep, 8);
  show("edge again", ep, 8);
  write(p[1], "c", 1);
  show("edge new data", ep, 8);
  add(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 3);
  show("oneshot", ep, 8);
  show("oneshot again", ep, 8);
  add(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 4);
  show("rearmed", ep, 8);
  read(p[0], b, sizeof b);
  add(ep, EPOLL_CTL_MOD, p[0], EPOLLIN, 5);
  show("drained", ep, 8);
  close(p[1]);
  show("hung up", ep, 8);
  printf("delete %d\n", epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL));
  show("deleted", ep, 8);
  close(p[0]);
  close(ep);
}

static void order(void) {
  int e[4];
  const uint64_t one = 1;
  const int ep = epoll_create(1);
  for (int i = 0; i < 4; ++i) {
    e[i] = eventfd(0, EFD_NONBLOCK);
    add(ep, EPOLL_CTL_ADD, e[i], EPOLLIN, (uint64_t)i);
  }
  write(e[2], &one, 8);
  write(e[0], &one, 8);
  write(e[3], &one, 8);
  show("order of readiness", ep, 8);
  show("two", ep, 2);
  show("next", ep, 2);
  show("and on", ep, 2);
  const int outer = epoll_create1(0);
  add(outer, EPOLL_CTL_ADD, ep, EPOLLIN, 77);
  show("nested", outer, 4);
  uint64_t v;
  for (int i = 0; i < 4; ++i) read(e[i], &v, 8);
  show("nested drained", outer, 4);
  close(e[1]);
  for (int i = 0; i < 4; ++i) close(e[i]);
  show("all closed", ep, 4);
  close(ep);
  close(outer);
}

// A duplicate keeps the registration of a closed number alive, as in Linux.
static void duplicates(void) {
  int p[2];
  pipe(p);
  const int ep = epoll_create1(0);
  const int copy = dup(p[0]);
  add(ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 8);
  close(p[0]);
  write(p[1], "x", 1);
  show("by duplicate", ep, 4);
  close(copy);
  show("gone", ep, 4);
  close(p[1]);
  close(ep);
}

static int shared_ep, shared_event;
static void* waiter(void* x) {
  (void)x;
  struct epoll_event e;
  const int n = epoll_wait(shared_ep, &e, 1, -1);
  uint64_t v = 0;
  read(shared_event, &v, 8);
  return (void*)(intptr_t)(n * 1000 + (int)v);
}

static void threads(void) {
  shared_ep = epoll_create1(0);
  shared_event = eventfd(0, 0);
  add(shared_ep, EPOLL_CTL_ADD, shared_event, EPOLLIN, 0);
  pthread_t t;
  pthread_create(&t, NULL, waiter, NULL);
  usleep(1000);
  const uint64_t v = 9;
  write(shared_event, &v, 8);
  void* result;
  pthread_join(t, &result);
  printf("thread %d\n", (int)(intptr_t)result);
  struct epoll_event e;
  printf("time-out %d\n", epoll_wait(shared_ep, &e, 1, 10));
  printf("bad size %d\n", epoll_wait(shared_ep, &e, 0, 0) < 0 && errno == EINVAL);
  printf("no epoll %d\n", epoll_wait(shared_event, &e, 1, 0) < 0 && errno == EINVAL);
}

// A ring of epolls, and a chain deeper than Linux allows, are refused.
static void loops(void) {
  struct epoll_event e = {.events = EPOLLIN};
  int ring[3], chain[8];
  for (int i = 0; i < 3; ++i) ring[i] = epoll_create1(0);
  printf("watch %d", epoll_ctl(ring[0], EPOLL_CTL_ADD, ring[1], &e));
  printf(" %d", epoll_ctl(ring[1], EPOLL_CTL_ADD, ring[2], &e));
  printf(" ring %d\n", epoll_ctl(ring[2], EPOLL_CTL_ADD, ring[0], &e) < 0 && errno == ELOOP);
  for (int i = 0; i < 8; ++i) chain[i] = epoll_create1(0);
  int depth = 0;
  while (depth < 7 && epoll_ctl(chain[depth + 1], EPOLL_CTL_ADD, chain[depth], &e) == 0) ++depth;
  printf("chain ends %d\n", depth < 7 && errno == ELOOP);
  for (int i = 0; i < 3; ++i) close(ring[i]);
  for (int i = 0; i < 8; ++i) close(chain[i]);
}

int main(void) {
  basic();
  order();
  duplicates();
  threads();
  loops();
  printf("EXIT-SUCCESS\n");
  return 0;
}
