// SPDX-License-Identifier: Apache-2.0
// A program can hold locks that it did not take: a record lock from before exec, and a lock of an
// open file that its child locked. They are released before the parent learns that the holder
// ended.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static char** arguments;

// Uses so much memory that the kernel closes the descriptors late.
static void become_large(void) {
  enum { kBytes = 64 << 20 };
  char* memory = malloc(kBytes);
  CHECK(memory != NULL);
  for (long i = 0; i < kBytes; i += 4096) ((volatile char*)memory)[i] = 1;
}

static int locks_and_executes(int x) {
  const int fd = open(path, O_RDWR);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  execl("/proc/self/exe", arguments[0], "again", (char*)NULL);
  return x;
}

static int locks(int fd) { return flock(fd, LOCK_EX | LOCK_NB); }

static int has_a_child_that_locks(int x) {
  const int fd = open(path, O_RDWR);
  CHECK_EQUAL(status_of(start_process(locks, fd)), 0);
  become_large();
  return x;
}

// When SIGCHLD arrives, the process has ended and its locks are free.
static int try_after(int (*routine)(int), int fd) {
  int signo = 0;
  const sigset_t end = set_of_signal(SIGCHLD);
  const pid_t p = start_process(routine, 0);
  CHECK_EQUAL(sigwait(&end, &signo), 0);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  const int busy = fcntl(fd, F_SETLK, &l) | flock(fd, LOCK_EX | LOCK_NB);
  CHECK_EQUAL(status_of(p), 0);
  l.l_type = F_UNLCK;
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  CHECK_EQUAL(flock(fd, LOCK_UN), 0);
  return busy;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    become_large();
    _exit(0);
  }
  arguments = argv;
  block_signal(SIGCHLD);
  const int fd = mkstemp(path);
  CHECK_EQUAL(try_after(locks_and_executes, fd), 0);
  CHECK_EQUAL(try_after(has_a_child_that_locks, fd), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
