// SPDX-License-Identifier: Apache-2.0
// System V semaphores and message queues, POSIX message queues: between processes, with time-outs,
// without waiting, across signals, and when the object is removed while a thread waits.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static int op(int id, int number, int by, int flags) {
  struct sembuf b = {(unsigned short)number, (short)by, (short)flags};
  return semop(id, &b, 1);
}

static void wait_for(pid_t child) {
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
}

static void on_signal(int s) { (void)s; }

static void semaphores(void) {
  const int id = semget(IPC_PRIVATE, 2, 0600);
  CHECK(id >= 0);
  CHECK_EQUAL(semctl(id, 0, SETVAL, 0), 0);
  CHECK_EQUAL(semctl(id, 1, SETVAL, 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 20; ++i) {
      CHECK_EQUAL(op(id, 0, -1, 0), 0);
      CHECK_EQUAL(op(id, 1, 1, 0), 0);
    }
    _exit(0);
  }
  for (int i = 0; i < 20; ++i) {
    CHECK_EQUAL(op(id, 0, 1, 0), 0);
    CHECK_EQUAL(op(id, 1, -1, 0), 0);
  }
  wait_for(child);
  CHECK_EQUAL(op(id, 0, -1, IPC_NOWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);
  struct sembuf two[2] = {{0, -1, 0}, {1, 1, IPC_NOWAIT}};
  const struct timespec nap = {0, 5000000};
  CHECK_EQUAL(semtimedop(id, two, 2, &nap), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(semctl(id, 1, GETVAL), 0);  // all or nothing
  // Waiting for zero.
  CHECK_EQUAL(op(id, 1, 2, 0), 0);
  const pid_t second = fork();
  if (second == 0) _exit(op(id, 1, 0, 0) == 0 && semctl(id, 1, GETVAL) == 0 ? 0 : 1);
  usleep(5000);
  CHECK_EQUAL(op(id, 1, -1, 0), 0);
  CHECK_EQUAL(op(id, 1, -1, 0), 0);
  wait_for(second);
  alarm(1);
  CHECK_EQUAL(op(id, 0, -1, 0), -1);
  CHECK_EQUAL(errno, EINTR);
  const pid_t third = fork();
  if (third == 0) _exit(op(id, 0, -1, 0) == -1 && errno == EIDRM ? 0 : 1);
  usleep(50000);
  CHECK_EQUAL(semctl(id, 0, IPC_RMID), 0);
  wait_for(third);
  printf("semaphores\n");
  fflush(stdout);
}

struct Message {
  long type;
  char text[64];
};

static void messages(void) {
  const int id = msgget(IPC_PRIVATE, 0600);
  CHECK(id >= 0);
  struct Message m = {1, "one"};
  CHECK_EQUAL(msgrcv(id, &m, sizeof m.text, 0, IPC_NOWAIT), -1);
  CHECK_EQUAL(errno, ENOMSG);
  const pid_t child = fork();
  if (child == 0) {
    // By type: the first message is not the one waited for.
    CHECK_EQUAL(msgrcv(id, &m, sizeof m.text, 7, 0), 6);
    CHECK(strcmp(m.text, "seven") == 0);
    CHECK_EQUAL(msgrcv(id, &m, sizeof m.text, 0, 0), 4);
    CHECK(strcmp(m.text, "one") == 0);
    usleep(5000);
    int received = 0;
    do {
      CHECK_EQUAL(msgrcv(id, &m, sizeof m.text, 0, 0), sizeof m.text);
    } while (m.type != 2000 && ++received > 0);
    _exit(received == 600 ? 0 : 1);
  }
  usleep(5000);
  CHECK_EQUAL(msgsnd(id, &(struct Message){1, "one"}, 4, 0), 0);
  CHECK_EQUAL(msgsnd(id, &(struct Message){7, "seven"}, 6, 0), 0);
  // More than the queue holds: the sender waits too.
  for (int i = 1; i <= 600; ++i) {
    CHECK_EQUAL(msgsnd(id, &(struct Message){10 + i, "many"}, sizeof m.text, 0), 0);
  }
  CHECK_EQUAL(msgsnd(id, &(struct Message){2000, "last"}, sizeof m.text, 0), 0);
  wait_for(child);
  CHECK_EQUAL(msgctl(id, IPC_RMID, NULL), 0);
  printf("messages\n");
  fflush(stdout);
}

static void posix_queue(void) {
  char name[40];
  snprintf(name, sizeof name, "/crane-test-%d", (int)getpid());
  struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = 16};
  const mqd_t q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
  if (q == (mqd_t)-1) {  // this machine has no such queues
    printf("queues\n");
    return;
  }
  mq_unlink(name);
  char text[16];
  unsigned priority = 0;
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_sec += 1;
  CHECK_EQUAL(mq_timedreceive(q, text, sizeof text, &priority, &at), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 10; ++i) {
      CHECK_EQUAL(mq_receive(q, text, sizeof text, &priority), 2);
      CHECK_EQUAL(priority, 3);
    }
    _exit(0);
  }
  for (int i = 0; i < 10; ++i) CHECK_EQUAL(mq_send(q, "x", 2, 3), 0);
  wait_for(child);
  struct mq_attr loose = {.mq_flags = O_NONBLOCK};
  CHECK_EQUAL(mq_setattr(q, &loose, NULL), 0);
  CHECK_EQUAL(mq_receive(q, text, sizeof text, NULL), -1);
  CHECK_EQUAL(errno, EAGAIN);
  mq_close(q);
  printf("queues\n");
  fflush(stdout);
}

int main(void) {
  struct sigaction a = {.sa_handler = on_signal};
  CHECK_EQUAL(sigaction(SIGALRM, &a, NULL), 0);
  semaphores();
  messages();
  posix_queue();
  return succeed();
}
