// SPDX-License-Identifier: Apache-2.0
// native: no
// The files about a program's real self and its machine read the same in every run, however much
// memory it has touched and however long it has computed.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static void show(const char* path) {
  char text[4096];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  const ssize_t got = read(fd, text, sizeof text);
  CHECK(got > 0 && read(fd, text, 1) == 0);
  CHECK(close(fd) == 0);
  printf("%s: %zd bytes\n%.*s", path, got, (int)got, text);
}

// As redis finds its resident memory: the 24th word.
static long resident(void) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)getpid());
  FILE* f = fopen(path, "r");
  CHECK(f != NULL && fgets(text, sizeof text, f) != NULL);
  fclose(f);
  const char* at = text;
  for (int i = 0; i < 23; ++i) {
    at = strchr(at, ' ');
    CHECK(at != NULL);
    ++at;
  }
  return strtol(at, NULL, 10);
}

static void all(void) {
  static const char* const paths[] = {
      "/proc/self/stat",  "/proc/self/statm", "/proc/self/status",
      "/proc/self/smaps", "/proc/self/io",    "/proc/meminfo",
      "/proc/loadavg",    "/proc/cpuinfo",    "/proc/self/smaps_rollup"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i) show(paths[i]);
  printf("resident pages: %ld\n", resident());
}

// The whole file.
static const char* text_of(const char* path) {
  static char text[1 << 16];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  size_t size = 0;
  for (ssize_t got; (got = read(fd, text + size, sizeof text - 1 - size)) > 0;) size += (size_t)got;
  text[size] = '\0';
  CHECK(close(fd) == 0);
  return text;
}

// Numbers of mounts, devices, inodes and namespaces, and paths of the machine, are not shown.
static void nothing_of_the_replica(void) {
  int number, parent, device;
  CHECK_EQUAL(sscanf(text_of("/proc/self/mountinfo"), "%d %d 0:%d / /", &number, &parent, &device),
              3);
  CHECK_EQUAL(number, 1);
  CHECK(strstr(text_of("/proc/1/mountinfo"), "upperdir=") == NULL);
  CHECK(strstr(text_of("/etc/mtab"), "=") == NULL && strstr(text_of("/proc/mounts"), "=") == NULL);
  CHECK(strcmp(text_of("/proc/self/cgroup"), "0::/\n") == 0);
  CHECK(open("/sys/fs/cgroup/cgroup.controllers", O_RDONLY) == -1 && errno == ENOENT);
  CHECK(strstr(text_of("/proc/self/maps"), " 08:01 ") != NULL);
  CHECK(strstr(text_of("/proc/self/maps"), "libc.so.6\n") != NULL);
  CHECK(strstr(text_of("/proc/self/fdinfo/0"), "mnt_id") == NULL);
  CHECK(strncmp(text_of("/proc/thread-self/fdinfo/0"), "pos:", 4) == 0);

  char link[64] = "", wanted[64];
  CHECK(readlink("/proc/self/ns/mnt", link, sizeof link) == 7 && strcmp(link, "mnt:[1]") == 0);
  CHECK(readlink("/proc/self/ns/mnt", link, 6) == 6);
  int ends[2];
  struct stat s;
  CHECK(pipe(ends) == 0 && fstat(ends[0], &s) == 0);
  snprintf(wanted, sizeof wanted, "/proc/self/fd/%d", ends[0]);
  const ssize_t size = readlink(wanted, link, sizeof link - 1);
  CHECK(size > 0);
  link[size] = '\0';
  snprintf(wanted, sizeof wanted, "pipe:[%lu]", (unsigned long)s.st_ino);
  CHECK(strcmp(link, wanted) == 0);
}

// A stable name of the machine, and names that are new in each run.
static void names(void) {
  char first[64];
  strcpy(first, text_of("/proc/sys/kernel/random/boot_id"));
  CHECK_EQUAL(strlen(first), 37);
  CHECK(strcmp(first, text_of("/proc/sys/kernel/random/boot_id")) == 0);
  const pid_t child = fork();
  if (child == 0) _exit(strcmp(first, text_of("/proc/sys/kernel/random/boot_id")) != 0);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  strcpy(first, text_of("/proc/sys/kernel/random/uuid"));
  CHECK(first[14] == '4' && strlen(first) == 37);
  CHECK(strcmp(first, text_of("/proc/sys/kernel/random/uuid")) != 0);
  printf("%s", first);
}

int main(void) {
  all();
  nothing_of_the_replica();
  names();
  // Natively each of these files shows the difference.
  const size_t size = (size_t)32 << 20;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  const long before = resident();
  memset(memory, 1, size);
  CHECK_EQUAL(resident(), before);
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  printf("faults %ld %ld, largest %ld\n", usage.ru_minflt, usage.ru_majflt, usage.ru_maxrss);
  // Other processes' files are the kernel's, and so is everything but plain reads.
  CHECK(access("/proc/1/stat", F_OK) == 0);
  CHECK(open("/proc/self/no_such_file", O_RDONLY) == -1 && errno == ENOENT);
  return succeed();
}
