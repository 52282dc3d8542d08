// SPDX-License-Identifier: Apache-2.0
// Threads write whole lines to one stream, under its own lock and with operations of the schedule
// while they hold it by flockfile. (libc's own locks are not operations of the schedule: programs
// whose threads share streams need serial mode.)
// parallel: no
#include "../small.h"

static FILE* out;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* print(void* x) {
  for (int i = 0; i < 20; ++i) {
    fprintf(out, "thread %ld line\n", (long)x);
    flockfile(out);
    fputs("thread", out);
    pthread_mutex_lock(&mutex);
    fprintf(out, " %ld", (long)x);
    pthread_mutex_unlock(&mutex);
    fputs(" line\n", out);
    funlockfile(out);
    if (i % 5 == 0) fflush(out);
  }
  return NULL;
}

int main(void) {
  pthread_t t[3];
  char line[64], wanted[64];
  out = tmpfile();
  for (long i = 0; i < 3; ++i) t[i] = start(print, (void*)i);
  for (int i = 0; i < 3; ++i) join(t[i]);
  rewind(out);
  int lines = 0;
  for (; fgets(line, sizeof line, out) != NULL; ++lines) {
    snprintf(wanted, sizeof wanted, "thread %c line\n", line[7]);
    CHECK_EQUAL(strcmp(line, wanted), 0);
  }
  CHECK_EQUAL(lines, 120);
  return succeed();
}
