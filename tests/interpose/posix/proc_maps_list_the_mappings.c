// SPDX-License-Identifier: Apache-2.0
// /proc/self/maps has a line for a mapping, with its protection and file, and none after munmap;
// /proc/self/mem reads and writes the memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "../small.h"

static int find(const void* at, char* protection, char* file) {
  FILE* const f = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  CHECK(f != NULL);
  while (!found && fgets(line, sizeof line, f) != NULL) {
    unsigned long from, to;
    file[0] = 0;
    if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %200s", &from, &to, protection, file) < 3) continue;
    found = (unsigned long)at >= from && (unsigned long)at < to;
  }
  CHECK_EQUAL(fclose(f), 0);
  return found;
}

int main(void) {
  char protection[8], file[256], name[] = "/tmp/mapsXXXXXX", c = 0;
  const int f = mkstemp(name);
  CHECK_EQUAL(ftruncate(f, 4096), 0);
  char* const m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  CHECK(m != MAP_FAILED);
  CHECK_EQUAL(find(m, protection, file), 1);
  CHECK_EQUAL(strcmp(protection, "rw-s"), 0);
  CHECK_EQUAL(strcmp(file, name), 0);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(mprotect(m, 4096, PROT_READ), 0);
  CHECK_EQUAL(find(m, protection, file), 1);
  CHECK_EQUAL(strcmp(protection, "r--s"), 0);
  CHECK_EQUAL(munmap(m, 4096), 0);
  CHECK_EQUAL(find(m, protection, file), 0);
  CHECK_EQUAL(find(&c, protection, file), 1);
  CHECK_EQUAL(strcmp(file, "[stack]"), 0);
  const int memory = open("/proc/self/mem", O_RDWR);
  CHECK(memory >= 0);
  volatile char here = 'a';
  CHECK_EQUAL(pread(memory, &c, 1, (off_t)(uintptr_t)&here), 1);
  CHECK_EQUAL(c, 'a');
  CHECK_EQUAL(pwrite(memory, "b", 1, (off_t)(uintptr_t)&here), 1);
  CHECK_EQUAL(here, 'b');
  return succeed();
}
