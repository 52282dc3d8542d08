// SPDX-License-Identifier: Apache-2.0
// native: no
// libc's own view of a file system does not depend on its type: proc's blocks have 1024 bytes, the
// root's 4096, and a stream's buffer would have that size (RT-V1).
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <malloc.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <wchar.h>

#include "check.h"

static size_t buffer_of(FILE* f) {
  CHECK(f != NULL);
  CHECK(fgetc(f) != EOF);
  const size_t size = __fbufsize(f);
  fclose(f);
  return size;
}

static void streams(void) {
  const char* paths[] = {"/proc/version", "/proc/self/limits", "/etc/passwd"};
  for (int i = 0; i < 3; ++i) {
    printf("%s: %zu\n", paths[i], buffer_of(fopen(paths[i], "r")));
    printf("%s, by descriptor: %zu\n", paths[i], buffer_of(fdopen(open(paths[i], O_RDONLY), "r")));
    printf("%s, again: %zu\n", paths[i],
           buffer_of(freopen(paths[i], "r", fopen("/etc/passwd", "r"))));
  }
  FILE* wide = fopen("/proc/version", "r");
  CHECK(fgetwc(wide) != WEOF);
  printf("wide: %zu\n", __fbufsize(wide));
  fclose(wide);
  FILE* f = tmpfile();
  CHECK(fputc('x', f) == 'x');
  printf("temporary: %zu\n", __fbufsize(f));
  fclose(f);
}

// A file that is mapped instead of read.
static void mapped(void) {
  printf("mapped: %zu\n", buffer_of(fopen("/etc/passwd", "rm")) > 0 ? (size_t)1 : 0);
}

static int show(const char* path, const struct stat* s, int type, struct FTW* where) {
  (void)where;
  printf("%s: type %d, block %ld, blocks %ld, links %u\n", path, type, (long)s->st_blksize,
         (long)s->st_blocks, (unsigned)s->st_nlink);
  return 0;
}

static void by_fts(void) {
  char root[] = "sub", *roots[] = {root, NULL};
  FTS* fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
  CHECK(fts != NULL);
  for (FTSENT* e; (e = fts_read(fts)) != NULL;) {
    printf("%s: block %ld, links %u\n", e->fts_path, (long)e->fts_statp->st_blksize,
           (unsigned)e->fts_statp->st_nlink);
  }
  fts_close(fts);
}

static void by_scandir(void) {
  struct dirent** list;
  const int n = scandir("sub", &list, NULL, NULL);
  for (int i = 0; i < n; ++i) {
    printf(" %s %ld %d", list[i]->d_name, (long)list[i]->d_off, list[i]->d_type);
    free(list[i]);
  }
  printf("\n");
  free(list);
}

static void by_glob(void) {
  glob_t found;
  CHECK(glob("sub/*", GLOB_NOSORT, NULL, &found) == 0);
  for (size_t i = 0; i < found.gl_pathc; ++i) printf(" %s", found.gl_pathv[i]);
  printf("\n");
  globfree(&found);
}

// In small pieces, as the kernel returns them to a direct caller.
static void by_number(void) {
  const int fd = open("sub", O_RDONLY | O_DIRECTORY);
  char buffer[64];
  for (int round = 0; round < 2; ++round) {
    for (long n; (n = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;) {
      for (long at = 0; at < n;) {
        const struct dirent64* e = (const void*)(buffer + at);
        printf(" %s", e->d_name);
        at += e->d_reclen;
      }
    }
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
  }
  CHECK(syscall(SYS_getdents64, fd, buffer, (size_t)8) == -1 && errno == EINVAL);
  printf("\n");
  close(fd);
}

// libc's own walks see the order and the sizes that readdir() and stat() return.
static void walks(void) {
  static const char* const names[] = {"ship", "anchor", "mast", "keel", "boom", "zenith", "helm"};
  char place[] = "/tmp/libc_view_XXXXXX", path[80];
  CHECK(mkdtemp(place) != NULL && chdir(place) == 0 && mkdir("sub", 0755) == 0);
  for (int i = 0; i < 7; ++i) {
    snprintf(path, sizeof path, "sub/%s", names[i]);
    FILE* f = fopen(path, "w");
    CHECK(f != NULL && fputs("text", f) >= 0 && fclose(f) == 0);
  }
  CHECK(nftw("sub", show, 8, FTW_PHYS) == 0);
  by_fts();
  by_scandir();
  by_glob();
  by_number();
  for (int i = 0; i < 7; ++i) {
    snprintf(path, sizeof path, "sub/%s", names[i]);
    CHECK(unlink(path) == 0);
  }
  CHECK(rmdir("sub") == 0 && chdir("/") == 0 && rmdir(place) == 0);
}

int main(void) {
  streams();
  mapped();
  walks();
  printf("processors %d of %d, pages %ld\n", get_nprocs(), get_nprocs_conf(), get_phys_pages());
  return succeed();
}
