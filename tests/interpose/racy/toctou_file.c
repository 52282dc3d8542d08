// SPDX-License-Identifier: Apache-2.0
// Check whether a file exists, then create it: both find it absent.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "racy.h"

static volatile int claims[3];
static char folder[] = "/tmp/crane_racy_XXXXXX";
static volatile char owner[30];
static void* claim(void* x) {
  const int me = (int)(long)x;
  for (int i = 0; i < 30; ++i) {
    char path[64];
    struct stat s;
    snprintf(path, sizeof path, "%s/%d", folder, i);
    if (stat(path, &s) != 0) {
      work(300);
      const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
      close(fd);
      ++claims[me];
      owner[i] = (char)('a' + me);
    }
    if (i % 7 == me) usleep(10);
  }
  return NULL;
}
int main(void) {
  if (mkdtemp(folder) == NULL) return 1;
  run_threads(3, claim);
  printf("claims %d %d %d, owners %.30s\n", claims[0], claims[1], claims[2], (char*)owner);
  for (int i = 0; i < 30; ++i) {
    char path[64];
    snprintf(path, sizeof path, "%s/%d", folder, i);
    unlink(path);
  }
  rmdir(folder);
  return 0;
}
