// SPDX-License-Identifier: Apache-2.0
// fsync and related calls from threads that share descriptors, with a fork in between, and their
// errors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

enum { kThreads = 4, kRounds = 8 };

static int file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int written;

static void* writer(void* unused) {
  (void)unused;
  for (int i = 0; i < kRounds; ++i) {
    CHECK_EQUAL(pthread_mutex_lock(&lock), 0);
    CHECK_EQUAL(pwrite(file, "x", 1, written++), 1);
    CHECK_EQUAL(pthread_mutex_unlock(&lock), 0);
    CHECK_EQUAL(i % 2 == 0 ? fdatasync(file) : fsync(file), 0);
  }
  return NULL;
}

// A child has none of its parent's flushing threads: it may close their descriptors.
static void* forker(void* unused) {
  (void)unused;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(close(file) == 0 && close(file) < 0 ? 0 : 1);
    int status = -1;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
  }
  return NULL;
}

// Flushes a descriptor that another thread may have closed already.
static void* late_flusher(void* fd) {
  const int result = fsync((int)(intptr_t)fd);
  return (void*)(intptr_t)(result == 0 || errno == EBADF);
}

static void errors(void) {
  CHECK(fsync(-1) < 0 && errno == EBADF);
  CHECK(fdatasync(9999) < 0 && errno == EBADF);
  int ends[2];
  CHECK_EQUAL(pipe(ends), 0);
  CHECK(fsync(ends[1]) < 0 && errno == EINVAL);
  char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(page != MAP_FAILED);
  page[0] = 'y';
  CHECK_EQUAL(msync(page, 4096, MS_SYNC), 0);
  CHECK(msync(page + 1, 4096, MS_SYNC) < 0 && errno == EINVAL);
  CHECK_EQUAL(sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE), 0);
  CHECK_EQUAL(syncfs(file), 0);
}

int main(void) {
  char name[] = "/tmp/flush-XXXXXX";
  file = mkstemp(name);
  CHECK(file >= 0);
  CHECK_EQUAL(unlink(name), 0);
  pthread_t threads[kThreads];
  for (int t = 0; t < kThreads; ++t) threads[t] = start(writer, NULL);
  pthread_t child_maker = start(forker, NULL);
  for (int t = 0; t < kThreads; ++t) join(threads[t]);
  join(child_maker);
  CHECK_EQUAL(lseek(file, 0, SEEK_END), kThreads * kRounds);
  for (int i = 0; i < 100; ++i) {
    const int fd = dup(file);
    pthread_t t = start(late_flusher, (void*)(intptr_t)fd);
    if (i % 2 != 0) sched_yield();
    CHECK_EQUAL(close(fd), 0);
    CHECK_EQUAL((intptr_t)join(t), 1);
  }
  errors();
  return succeed();
}
