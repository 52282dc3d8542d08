// SPDX-License-Identifier: Apache-2.0
// Every way out of a process: return, exit from another thread while main waits (trap 20), _exit,
// quick_exit, the last thread's pthread_exit, with handlers that synchronise and unflushed output.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t idle_thread;
static int has_idle;

static void* idle(void* x) {
  sleep(1000000);
  return x;
}
static void at_end(void) {
  pthread_mutex_lock(&mutex);
  printf(" handler");
  pthread_mutex_unlock(&mutex);
  if (has_idle) {
    pthread_cancel(idle_thread);
    pthread_join(idle_thread, NULL);
    printf(" joined");
  }
  printf("\n");
}
static void at_quick_end(void) {
  printf(" quick handler\n");
  fflush(stdout);
}
static void* exit_here(void* x) { exit((int)(long)x); }
static void* end_last(void* x) {
  sleep(1);
  printf(" last thread");
  return x;
}
__attribute__((destructor)) static void destroy(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

static int run(const char* way) {
  pthread_t t;
  atexit(at_end);
  at_quick_exit(at_quick_end);
  printf("%s:", way);
  if (strcmp(way, "return") == 0) return 1;
  if (strcmp(way, "exit") == 0) exit(2);
  if (strcmp(way, "exit in a thread") == 0) {
    has_idle = 1;
    pthread_create(&idle_thread, NULL, idle, NULL);
    pthread_create(&t, NULL, exit_here, (void*)3);
    pthread_join(t, NULL);
  }
  if (strcmp(way, "_exit") == 0) {
    printf(" nothing\n");
    fflush(stdout);
    _exit(4);
  }
  if (strcmp(way, "quick_exit") == 0) quick_exit(5);
  if (strcmp(way, "last thread") == 0) {
    pthread_create(&t, NULL, end_last, NULL);
    pthread_exit(NULL);
  }
  return 99;
}

int main(void) {
  const char* const ways[] = {"return", "exit",       "exit in a thread",
                              "_exit",  "quick_exit", "last thread"};
  for (int i = 0; i < 6; ++i) {
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) return run(ways[i]);
    int status;
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    printf("%d\n", WEXITSTATUS(status));
  }
  return succeed();
}
