// SPDX-License-Identifier: Apache-2.0
// A server to dump and restore (patient.h): several threads and processes, two users, shared
// mappings, pipes, placeholder sockets, open files without a name.
#include "patient.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUST(condition)                                                  \
  do {                                                                   \
    if (!(condition)) {                                                  \
      fprintf(stderr, "patient: %s: %s\n", #condition, strerror(errno)); \
      exit(99);                                                          \
    }                                                                    \
  } while (0)

enum { kSockets = 3, kNobody = 65534 };

static const char kSecret[] = "what only its memory knows";
static struct patient_segment* segment;
static unsigned changes;
static char* secret;
static volatile unsigned counters[PATIENT_THREADS];
static int sockets[kSockets], doorbell, last, shm, unlinked, renamed;
static int to_child[2], from_child[2];

static void* count(void* counter) {
  for (;;) {
    ++*(volatile unsigned*)counter;
    usleep(500);
  }
  return NULL;
}

// Adds the argument to a number that exists only in its memory.
static void run_child(void) {
  unsigned sum = 0, word;
  MUST(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  MUST(setgid(kNobody) == 0 && setuid(kNobody) == 0);
  while (read(to_child[0], &word, sizeof word) == sizeof word) {
    sum += word;
    MUST(write(from_child[1], &sum, sizeof sum) == sizeof sum);
  }
  exit(0);
}

static int exists(const char* path) { return access(path, F_OK) == 0; }

static int holds(const char* path, const char* text) {
  char buffer[64] = "";
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, buffer, sizeof buffer - 1);
  close(fd);
  return got == (ssize_t)strlen(text) && strcmp(buffer, text) == 0;
}

static void put(const char* path, const char* text, int flags) {
  const int fd = open(path, O_WRONLY | O_CREAT | flags, 0640);
  MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  close(fd);
}

static int fd_holds(int fd, const char* text) {
  char buffer[64] = "";
  const ssize_t got = pread(fd, buffer, sizeof buffer - 1, 0);
  return got == (ssize_t)strlen(text) && strcmp(buffer, text) == 0;
}

static int descriptors_are_right(void) {
  for (int i = 0; i < kSockets; ++i) {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(sockets[i], SOL_SOCKET, SO_TYPE, &type, &size) != 0) return 0;
    if (type != SOCK_STREAM || sockets[i] != sockets[0] + i) return 0;
  }
  char byte = 0;
  if (write(doorbell, "x", 1) != 1 || read(doorbell, &byte, 1) != 1 || byte != 'x') return 0;
  if (write(last, "y", 1) != 1 || read(doorbell, &byte, 1) != 1 || byte != 'y') return 0;
  return fd_holds(shm, "shared memory") && holds("/dev/shm/patient", "shared memory");
}

static int memory_is_right(void) {
  unsigned before[PATIENT_THREADS];
  if (strcmp(secret, kSecret) != 0 || changes != segment->changes) return 0;
  for (int i = 0; i < PATIENT_THREADS; ++i) before[i] = counters[i];
  for (int i = 0; i < PATIENT_THREADS; ++i) {
    while (counters[i] == before[i]) usleep(200);
  }
  return 1;
}

static int child_is_right(void) {
  static unsigned sum;
  unsigned got = 0;
  const unsigned word = 7;
  sum += word;
  MUST(write(to_child[1], &word, sizeof word) == sizeof word);
  MUST(read(from_child[0], &got, sizeof got) == sizeof got);
  return got == sum;
}

static int files_are_right(void) {
  if (changes == 0) return exists("/etc/hostname") && !exists("/etc/patient.new");
  struct stat info;
  return !exists("/etc/hostname") && holds("/etc/patient.new", "new") &&
         stat("/etc/patient.new", &info) == 0 && (info.st_mode & 0777) == 0640 &&
         stat("/etc/debian_version", &info) == 0 && info.st_size > 100;
}

static unsigned check(void) {
  unsigned right = 0;
  if (memory_is_right()) right |= kPatientMemory;
  if (child_is_right()) right |= kPatientChild;
  if (descriptors_are_right()) right |= kPatientDescriptors;
  if (files_are_right()) right |= kPatientFiles;
  if (fd_holds(unlinked, "unlinked") && fd_holds(renamed, "renamed")) right |= kPatientUnlinked;
  if (personality(0xffffffff) & ADDR_NO_RANDOMIZE) right |= kPatientPersonality;
  return right;
}

static void change(void) {
  char line[101];
  unlink("/etc/hostname");
  put("/etc/patient.new", "new", O_TRUNC);
  memset(line, '#', sizeof line - 1);
  line[sizeof line - 1] = '\0';
  put("/etc/debian_version", line, O_APPEND);
  segment->changes = ++changes;
  printf("change %u\n", changes);
  fflush(stdout);
}

static unsigned obey(void) {
  switch (segment->word) {
    case kPatientCheck:
      return check();
    case kPatientChange:
      change();
      return 1;
    case kPatientExit:
      exit((int)segment->argument);
    case kPatientUring: {
      unsigned parameters[30] = {0};
      return syscall(SYS_io_uring_setup, 4, parameters) >= 0;
    }
    case kPatientQueue:
      return mq_open("/patient", O_RDWR | O_CREAT, 0600, NULL) >= 0;
    default:
      return 0;
  }
}

static void open_files(void) {
  for (int i = 0; i < kSockets; ++i) {
    sockets[i] = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(sockets[i] >= 0);
  }
  doorbell = open("/run/crane/doorbell", O_RDWR);
  MUST(doorbell >= 0);
  // At the end of the allowed range, like libcrane.so's descriptors.
  struct rlimit limit;
  MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  last = dup2(doorbell, (int)limit.rlim_cur - 4);
  MUST(last >= 0);
  put("/dev/shm/patient", "shared memory", 0);
  shm = open("/dev/shm/patient", O_RDWR);
  put("/var/patient.unlinked", "unlinked", 0);
  unlinked = open("/var/patient.unlinked", O_RDWR);
  MUST(unlink("/var/patient.unlinked") == 0);
  // One name remains, but not the one it was opened by.
  put("/var/patient.renamed", "renamed", 0);
  renamed = open("/var/patient.renamed", O_RDWR);
  MUST(link("/var/patient.renamed", "/var/patient.other") == 0);
  MUST(unlink("/var/patient.renamed") == 0);
  MUST(shm >= 0 && unlinked >= 0 && renamed >= 0);
}

int main(void) {
  const int fd = open("/run/crane/segment", O_RDWR);
  MUST(fd >= 0);
  segment = mmap(NULL, PATIENT_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  MUST(segment != MAP_FAILED);
  close(fd);
  secret = strdup(kSecret);
  open_files();
  MUST(pipe(to_child) == 0 && pipe(from_child) == 0);
  const int child = fork();
  if (child == 0) run_child();
  segment->child = child;
  for (long i = 0; i < PATIENT_THREADS; ++i) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, count, (void*)&counters[i]) == 0);
  }
  printf("started\n");
  fflush(stdout);
  for (;;) {
    if (__atomic_load_n(&segment->asked, __ATOMIC_ACQUIRE) != segment->answered) {
      segment->answer = obey();
      __atomic_store_n(&segment->answered, segment->answered + 1, __ATOMIC_RELEASE);
    }
    usleep(500);
  }
}
