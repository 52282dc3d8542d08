// SPDX-License-Identifier: Apache-2.0
// read, poll, select and epoll wait for events of other threads and of other processes.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "../inotify.h"

static int fd;

static void* read_one(void* given) {
  char room[64];
  (void)given;
  return (void*)read(fd, room, sizeof room);
}

static void* make_later(void* given) {
  sleep_ms(20);
  make_file(given);
  return NULL;
}

static void interrupted_read(void) {
  char room[64];
  struct Interruptions i;
  begin_interruptions(&i, 0);
  FAILS(read(fd, room, sizeof room), EINTR);
  end_interruptions(&i);
}

static void waits_by_set(void) {
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  pthread_t t = start(make_later, "b");
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(p.revents, POLLIN);
  EXPECT(fd, "1 create b");
  join(t);
  t = start(make_later, "c");
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  CHECK_EQUAL(select(fd + 1, &set, NULL, NULL, NULL), 1);
  EXPECT(fd, "1 create c");
  join(t);
}

static void waits_by_epoll(uint32_t how) {
  struct epoll_event e = {EPOLLIN | how, {.fd = fd}};
  const int ep = epoll_create1(0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
  CHECK_EQUAL(epoll_wait(ep, &e, 1, 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    make_file("d");
    _exit(0);
  }
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  CHECK_EQUAL(epoll_wait(ep, &e, 1, -1), 1);
  CHECK_EQUAL(epoll_wait(ep, &e, 1, 0), how == 0 ? 1 : 0);
  make_file("e");  // an edge, too
  CHECK_EQUAL(epoll_wait(ep, &e, 1, -1), 1);
  EXPECT(fd, "1 create d, 1 create e");
  CHECK_EQUAL(epoll_wait(ep, &e, 1, 0), 0);
  CHECK(unlink("d") == 0 && unlink("e") == 0 && close(ep) == 0);
}

int main(void) {
  enter_directory();
  fd = inotify_init();
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_CREATE), 1);
  const pthread_t t = start(read_one, NULL);
  sleep_ms(20);
  make_file("a");
  CHECK_EQUAL((long)join(t), 32);
  interrupted_read();
  waits_by_set();
  waits_by_epoll(0);
  waits_by_epoll(EPOLLET);
  for (const char* name = "a\0b\0c\0"; *name != '\0'; name += 2) CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(close(fd), 0);
  leave_directory();
  return succeed();
}
