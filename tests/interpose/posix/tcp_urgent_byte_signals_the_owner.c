// SPDX-License-Identifier: Apache-2.0
// SIGURG goes to the owner set by F_SETOWN, F_SETOWN_EX, FIOSETOWN or SIOCSPGRP: a process, a group
// or a thread. An accepted socket has none; a socket keeps its owner when it is connected.
#define _GNU_SOURCE
#include <linux/sockios.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tcp_urgent.h"

static volatile sig_atomic_t rings;
static void ring(int signo) { rings += signo == SIGURG; }

// A handler as in FTP and telnet servers: it reads the urgent byte, which a plain read skips.
static int served;
static volatile sig_atomic_t last;
static void get(int signo) {
  char byte = 0;
  if (signo == SIGURG && recv(served, &byte, 1, MSG_OOB) == 1) last = byte;
}

static void await_ring(int count) {
  while (rings < count) CHECK(poll(NULL, 0, 5) <= 0);
  CHECK_EQUAL(rings, count);
}

static void* wait_for_ring(void* info) {
  const sigset_t set = set_of_signal(SIGURG);
  CHECK_EQUAL(sigwaitinfo(&set, info), SIGURG);
  return NULL;
}

struct Thread {
  volatile pid_t id;
  int fd;
  sem_t ready;
};

static void* own(void* given) {
  struct Thread* t = given;
  t->id = (pid_t)syscall(SYS_gettid);
  const struct f_owner_ex owner = {F_OWNER_TID, t->id};
  CHECK_EQUAL(fcntl(t->fd, F_SETOWN_EX, &owner), 0);
  CHECK_EQUAL(sem_post(&t->ready), 0);
  siginfo_t info;
  wait_for_ring(&info);
  CHECK_EQUAL(info.si_code, SI_KERNEL);
  return NULL;
}

static void* send_urgent(void* to) {
  sleep_ms(20);  // the reader is usually blocked after that
  send_text(*(int*)to, "!", MSG_OOB);
  send_text(*(int*)to, "x", 0);
  return NULL;
}

// Calls that set and return the owner.
static void name_owners(int from) {
  CHECK_EQUAL(fcntl(from, F_SETOWN, getpid()), 0);
  CHECK_EQUAL(fcntl(from, F_GETOWN), getpid());
  int owner = getpid();
  CHECK_EQUAL(ioctl(from, SIOCSPGRP, &owner), 0);
  owner = 0;
  CHECK_EQUAL(ioctl(from, SIOCGPGRP, &owner), 0);
  CHECK_EQUAL(owner, getpid());
  CHECK_EQUAL(fcntl(from, F_SETOWN, 4000000), -1);
  CHECK_EQUAL(errno, ESRCH);
  const struct f_owner_ex none = {9, 0};
  CHECK_EQUAL(fcntl(from, F_SETOWN_EX, &none), -1);
  CHECK_EQUAL(errno, EINVAL);
}

// The owner is the group of a child.
static void ring_group(int to, int from) {
  int ready[2];
  CHECK_EQUAL(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    rings = 0;
    CHECK_EQUAL(setpgid(0, 0), 0);
    CHECK_EQUAL(write(ready[1], "r", 1), 1);
    await_ring(1);
    _exit(7);
  }
  char byte;
  CHECK_EQUAL(read(ready[0], &byte, 1), 1);
  const int owner = -child;
  CHECK_EQUAL(ioctl(from, FIOSETOWN, &owner), 0);
  struct f_owner_ex x;
  CHECK_EQUAL(fcntl(from, F_GETOWN_EX, &x), 0);
  CHECK(x.type == F_OWNER_PGRP && x.pid == child);
  CHECK_EQUAL(fcntl(from, F_GETOWN), -child);
  send_text(to, "3", MSG_OOB);
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK_EQUAL(rings, 1);
}

// A blocked read runs the handler before it returns bytes that follow the urgent byte.
static void ring_reader(int to, int from) {
  char byte;
  served = from;
  handle(SIGURG, get, SA_RESTART);
  CHECK_EQUAL(fcntl(from, F_SETOWN, getpid()), 0);
  while (recv(from, &byte, 1, MSG_DONTWAIT) == 1) continue;
  block_signal(SIGURG);
  const pthread_t t = start(send_urgent, &to);
  unblock_signal(SIGURG);
  CHECK_EQUAL(recv(from, &byte, 1, 0), 1);
  CHECK_EQUAL(byte, 'x');
  CHECK_EQUAL(last, '!');
  join(t);
}

static void ring_thread(int to, int from) {
  struct Thread mine = {.fd = from};
  CHECK_EQUAL(sem_init(&mine.ready, 0, 0), 0);
  const pthread_t t = start(own, &mine);
  CHECK_EQUAL(sem_wait(&mine.ready), 0);
  send_text(to, "4", MSG_OOB);
  join(t);
}

static void own_before_connected(void) {
  int port = 0;
  const int listener = listen_at_loopback(1, &port);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(fcntl(client, F_SETOWN, getpid()), 0);
  CHECK_EQUAL(try_connect(client, port), 0);
  CHECK_EQUAL(fcntl(client, F_GETOWN), getpid());
  const int accepted = accept(listener, NULL, NULL);
  CHECK_EQUAL(fcntl(accepted, F_GETOWN), 0);
  send_text(accepted, "5", MSG_OOB);
  siginfo_t info;
  wait_for_ring(&info);
}

int main(void) {
  int e[2];
  connected_pair(e);
  const int to = e[0], from = e[1];
  handle(SIGURG, ring, SA_RESTART);
  CHECK_EQUAL(fcntl(from, F_GETOWN), 0);
  send_text(to, "1", MSG_OOB);
  await_level(from, POLLPRI);
  CHECK_EQUAL(rings, 0);
  name_owners(from);
  send_text(to, "2", MSG_OOB);
  await_ring(1);
  ring_group(to, from);
  ring_reader(to, from);
  block_signal(SIGURG);
  ring_thread(to, from);
  own_before_connected();
  return succeed();
}
