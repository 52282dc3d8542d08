// SPDX-License-Identifier: Apache-2.0
// exit runs the functions of atexit and on_exit in reverse, those added meanwhile next, and passes
// on_exit the status; quick_exit runs only its own; _Exit none.
#define _GNU_SOURCE
#include "../child.h"

static int out;
static void put(char c) { CHECK_EQUAL(write(out, &c, 1), 1); }
static void a(void) { put('a'); }
static void b(void) { put('b'); }
static void late(void) { put('l'); }
static void adds(void) {
  put('c');
  CHECK_EQUAL(atexit(late), 0);
}
static void told(int status, void* argument) {
  CHECK_EQUAL(status, 5);
  put(*(char*)argument);
}
static void quick_a(void) { put('q'); }
static void quick_b(void) { put('r'); }

static void* leave(void* unused) {
  exit(5);
  return unused;
}

static char letter = 'o';
static int leaves(int how) {
  atexit(a);
  on_exit(told, &letter);
  atexit(adds);
  atexit(b);
  at_quick_exit(quick_a);
  at_quick_exit(quick_b);
  if (how == 0) exit(5);
  if (how == 1) quick_exit(6);
  if (how == 2) _Exit(7);
  elsewhere(leave, NULL);
  return 0;
}

static void expect(int how, int status, const char* wanted) {
  int fds[2];
  char text[20] = {0};
  CHECK_EQUAL(pipe(fds), 0);
  out = fds[1];
  const pid_t child = start_process(leaves, how);
  CHECK_EQUAL(status_of(child), status << 8);
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL(read(fds[0], text, sizeof text), strlen(wanted));
  CHECK_EQUAL(strcmp(text, wanted), 0);
  CHECK_EQUAL(close(fds[0]), 0);
}

int main(void) {
  expect(0, 5, "bcloa");
  expect(1, 6, "rq");
  expect(2, 7, "");
  expect(3, 5, "bcloa");
  return succeed();
}
