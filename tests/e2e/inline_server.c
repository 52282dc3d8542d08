// SPDX-License-Identifier: Apache-2.0
// A server that bypasses libc: its two threads hand over requests by a futex in inline assembly,
// and at its start it requests io_uring, as libraries with their own system calls do.
//
//   inline_server PORT
//
// Answers each line with its length; its greeting reports whether it got a ring.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static long call4(long n, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "r8", "r9", "memory");
  return result;
}

// The connection that the worker is to serve; 0: none.
static atomic_int handed;
static int has_ring;

static void wait_while(int value) {
  while (handed == value) call4(SYS_futex, (long)&handed, FUTEX_WAIT_PRIVATE, value, 0);
}
static void hand(int value) {
  handed = value;
  call4(SYS_futex, (long)&handed, FUTEX_WAKE_PRIVATE, 1, 0);
}

static void serve(int fd) {
  char text[512];
  int n = snprintf(text, sizeof text, "ring: %s\n", has_ring ? "yes" : "no");
  if (write(fd, text, (size_t)n) != n) return;
  FILE* in = fdopen(dup(fd), "r");
  while (fgets(text, sizeof text, in) != NULL) {
    n = snprintf(text, sizeof text, "%zu\n", strlen(text));
    if (write(fd, text, (size_t)n) != n) break;
  }
  fclose(in);
}

static void* work(void* x) {
  for (;;) {
    wait_while(0);
    const int fd = handed;
    serve(fd);
    close(fd);
    hand(0);
  }
  return x;
}

int main(int argc, char** argv) {
  char parameters[120] = {0};
  const long ring = call4(SYS_io_uring_setup, 4, (long)parameters, 0, 0);
  has_ring = ring >= 0;
  struct sockaddr_in at = {.sin_family = AF_INET};
  at.sin_port = htons((unsigned short)atoi(argc > 1 ? argv[1] : "0"));
  const int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (const struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 64) != 0) {
    perror("inline_server");
    return 1;
  }
  pthread_t worker;
  if (pthread_create(&worker, NULL, work, NULL) != 0) return 1;
  for (;;) {
    const int fd = accept(listener, NULL, NULL);
    if (fd < 0) continue;
    hand(fd);
    wait_while(fd);
  }
}
