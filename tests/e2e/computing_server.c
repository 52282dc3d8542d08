// SPDX-License-Identifier: Apache-2.0
// A server that computes for its clients, one thread for each connection and one line for each
// request:
//
//   ping                  "pong"
//   loop N                a loop of N rounds that calls nothing
//   calls N               a loop of N rounds that calls a function of the program
//   real MS N, prof MS N  the first loop until the signal of a timer of MS ms of real or processor
//                         time; "stopped ROUNDS", or "ran N" if no signal came
//   wait                  until another connection sends "free"; "freed"
//   limit N               the same with RLIMIT_CPU set to one second more than used, and SIGXCPU
//
//   computing_server PORT [spins]    "spins": before it serves, it waits in that loop for a thread
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested;
static volatile int freed;

static void on_signal(int number) { stop_requested = number; }

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static __attribute__((noinline)) uint64_t loop(uint64_t rounds) {
  uint64_t x = 88172645463325252ull;
  for (uint64_t i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

static __attribute__((noinline)) uint64_t next(uint64_t x) {
  __asm__ volatile("");
  for (int i = 0; i < 20; ++i) x = x * 6364136223846793005ull + 1442695040888963407ull;
  return x;
}

static __attribute__((noinline)) uint64_t calls(uint64_t rounds) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < rounds; ++i) x = next(x);
  return x;
}

static __attribute__((noinline)) uint64_t compute_until_signal(uint64_t rounds) {
  uint64_t i = 0;
  while (i < rounds && !stop_requested) ++i;
  return i;
}

static void write_answer(char* out, size_t room, uint64_t rounds) {
  const uint64_t ran = compute_until_signal(rounds);
  snprintf(out, room, "%s %llu\n", ran < rounds ? "stopped" : "ran", (unsigned long long)ran);
}

static void answer(char* line, char* out, size_t room) {
  unsigned long long rounds = 0;
  int ms = 0;
  stop_requested = 0;
  if (sscanf(line, "loop %llu", &rounds) == 1) {
    snprintf(out, room, "%llu\n", (unsigned long long)loop(rounds));
  } else if (sscanf(line, "calls %llu", &rounds) == 1) {
    snprintf(out, room, "%llu\n", (unsigned long long)calls(rounds));
  } else if (sscanf(line, "real %d %llu", &ms, &rounds) == 2 ||
             sscanf(line, "prof %d %llu", &ms, &rounds) == 2) {
    const struct itimerval t = {{0, 0}, {ms / 1000, ms % 1000 * 1000}};
    const struct itimerval none = {{0, 0}, {0, 0}};
    const int which = line[0] == 'r' ? ITIMER_REAL : ITIMER_PROF;
    if (setitimer(which, &t, NULL) != 0) fail("setitimer");
    write_answer(out, room, rounds);
    setitimer(which, &none, NULL);
  } else if (strcmp(line, "wait\n") == 0) {
    while (!freed) continue;
    snprintf(out, room, "freed\n");
  } else if (sscanf(line, "limit %llu", &rounds) == 1) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    const struct rlimit limit = {(rlim_t)used.tv_sec + 1, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CPU, &limit) != 0) fail("setrlimit");
    write_answer(out, room, rounds);
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CPU, &none);
  } else {
    freed = freed || strcmp(line, "free\n") == 0;
    snprintf(out, room, "pong\n");
  }
}

static void* serve(void* argument) {
  const int fd = (int)(intptr_t)argument;
  char line[256];
  size_t got = 0;
  for (;;) {
    const ssize_t n = read(fd, line + got, sizeof line - 1 - got);
    if (n <= 0) break;
    got += (size_t)n;
    line[got] = '\0';
    if (strchr(line, '\n') == NULL) continue;
    char out[64];
    answer(line, out, sizeof out);
    if (write(fd, out, strlen(out)) < 0) break;
    got = 0;
  }
  close(fd);
  return NULL;
}

static void* set_free(void* unused) {
  (void)unused;
  freed = 1;
  return NULL;
}

static void wait_for_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, set_free, NULL) != 0) fail("pthread_create");
  while (!freed) continue;
  pthread_join(thread, NULL);
  freed = 0;
}

int main(int count, char** words) {
  if (count < 2) return 2;
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGPROF, &action, NULL);
  sigaction(SIGXCPU, &action, NULL);
  if (count > 2) wait_for_thread();
  const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(words[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0) fail("bind");
  if (listen(listener, 64) != 0) fail("listen");
  for (;;) {
    const int fd = accept(listener, NULL, NULL);
    if (fd < 0) fail("accept");
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, (void*)(intptr_t)fd) != 0) fail("pthread_create");
    pthread_detach(thread);
  }
}
