// SPDX-License-Identifier: Apache-2.0
// native: no
// What a program reads of its real self and of its machine is the same in every run, however much
// memory it has touched and however long it has computed.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

int main(void) {
  all();
  // Natively that shows in every one of them.
  const size_t size = (size_t)32 << 20;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  const long before = resident();
  memset(memory, 1, size);
  CHECK_EQUAL(resident(), before);
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  printf("faults %ld %ld, largest %ld\n", usage.ru_minflt, usage.ru_majflt, usage.ru_maxrss);
  // Another's are the kernel's, and what is no plain reading.
  CHECK(access("/proc/1/stat", F_OK) == 0);
  CHECK(open("/proc/self/no_such_file", O_RDONLY) == -1 && errno == ENOENT);
  return succeed();
}
