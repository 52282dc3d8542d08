// SPDX-License-Identifier: Apache-2.0
// pthread_atfork: prepare handlers run in reverse, the others in order; they may lock, start
// threads and fork again, and run for each of those forks.
#include "../child.h"

static char text[200];
static int length, nested;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void put(char c) { text[length++] = c; }
static void prepare_a(void) { put('a'); }
static void parent_a(void) { put('b'); }
static void child_a(void) { put('c'); }

static void* add(void* unused) {
  put('t');
  return unused;
}

static void prepare_d(void) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  elsewhere(add, NULL);
  put('d');
}
static void parent_d(void) {
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  put('e');
}
static void child_d(void) {
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  elsewhere(add, NULL);
  put('f');
}
static void child_g(void) {
  put('g');
  if (nested++ == 0) CHECK_EQUAL(status_of(start_process(abs, 5)), 5 << 8);
}

static int look(int unused) {
  text[length] = 0;
  CHECK_EQUAL(strcmp(text, "tdactfgtdabe"), 0);
  return unused;
}

int main(void) {
  CHECK_EQUAL(pthread_atfork(prepare_a, parent_a, child_a), 0);
  CHECK_EQUAL(pthread_atfork(prepare_d, parent_d, child_d), 0);
  CHECK_EQUAL(pthread_atfork(NULL, NULL, child_g), 0);
  CHECK_EQUAL(status_of(start_process(look, 0)), 0);
  text[length] = 0;
  CHECK_EQUAL(strcmp(text, "tdabe"), 0);
  return succeed();
}
