// SPDX-License-Identifier: Apache-2.0
// A server with a process per client, which acts on one byte and ends:
//
//   overflow_server PORT
//
//   o   its stack overflows
//   t   the stack of one of its threads overflows
//   h   that of a thread with a handler on an alternate stack overflows: answers "handled"
//   n   it reads at address 0
//   c   answers how many processes have died of SIGSEGV
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int never_ends = 1;
__attribute__((noinline)) static int overflow(volatile char* above) {
  volatile char here[4096];
  if (!never_ends) return 0;
  here[0] = above == NULL ? 0 : *above;
  return overflow(here) + here[0];
}

static void* overflows(void* x) {
  overflow(NULL);
  return x;
}

static __thread sigjmp_buf back;
static void jump_back(int signo) { siglongjmp(back, signo); }

static void* handles(void* x) {
  const stack_t stack = {.ss_sp = malloc(64 * 1024), .ss_size = 64 * 1024};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = jump_back;
  action.sa_flags = SA_ONSTACK;
  if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0) return x;
  for (volatile int i = 0; i < 3; ++i) {
    if (sigsetjmp(back, 1) == 0) overflow(NULL);
  }
  return "handled\n";
}

static const char* in_thread(void* (*routine)(void*)) {
  pthread_t thread;
  void* result = NULL;
  if (pthread_create(&thread, NULL, routine, "nothing\n") != 0) return "no thread\n";
  pthread_join(thread, &result);
  return result;
}

static void serve(int client, int died) {
  char what = 0, counted[32];
  if (read(client, &what, 1) != 1) return;
  const char* answer = "what?\n";
  snprintf(counted, sizeof counted, "%d\n", died);
  if (what == 'o') overflow(NULL);
  if (what == 't') in_thread(overflows);
  if (what == 'h') answer = in_thread(handles);
  if (what == 'n') answer = (const char*)(long)*(volatile char*)(long)(never_ends - 1);
  if (what == 'c') answer = counted;
  if (write(client, answer, strlen(answer)) < 0) _exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)atoi(argv[1]));
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0) return 1;
  if (listen(listener, 128) != 0) return 1;
  for (int died = 0;;) {
    const int client = accept(listener, NULL, NULL);
    if (client < 0) continue;
    const pid_t child = fork();
    if (child == 0) {
      serve(client, died);
      _exit(0);
    }
    close(client);
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 1;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ++died;
  }
}
