// SPDX-License-Identifier: Apache-2.0
// A signal to the process runs its handler once, in a thread that does not block it: in the first
// such thread, or in the sender before kill returns if only the sender does not block it.
#include "../small.h"

static sem_t ran;
static int who;

static void note(int signo) {
  (void)signo;
  who = gettid();
  CHECK_EQUAL(sem_post(&ran), 0);
}

static void* send_to_main(void* unused) {
  block_signal(SIGUSR1);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  CHECK_EQUAL(sem_wait(&ran), 0);
  CHECK_EQUAL(who, getpid());
  return unused;
}

static void* send_to_itself(void* unused) {
  unblock_signal(SIGUSR1);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  CHECK_EQUAL(who, gettid());
  CHECK_EQUAL(sem_trywait(&ran), 0);
  CHECK_EQUAL(sem_trywait(&ran), -1);
  return unused;
}

int main(void) {
  CHECK_EQUAL(sem_init(&ran, 0, 0), 0);
  handle(SIGUSR1, note, 0);
  for (int i = 0; i < 5; ++i) elsewhere(send_to_main, NULL);
  block_signal(SIGUSR1);
  for (int i = 0; i < 5; ++i) elsewhere(send_to_itself, NULL);
  return succeed();
}
