// SPDX-License-Identifier: Apache-2.0
// native: no
// Operations that file systems implement differently have one result: holes, modes of fallocate,
// queries of a file's blocks, O_DIRECT, copies between file systems, pages in memory, handles.
// Walks (nftw, ftw, fts, scandir) report the same as stat for each file.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int make(const char* path, int flags) {
  const int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | flags, 0644);
  CHECK(fd >= 0);
  return fd;
}

static void holes(void) {
  const int fd = make("sparse", 0);
  CHECK_EQUAL(ftruncate(fd, 1 << 20), 0);
  CHECK_EQUAL(pwrite(fd, "x", 1, 700000), 1);
  CHECK_EQUAL(lseek(fd, 0, SEEK_DATA), 0);
  CHECK_EQUAL(lseek(fd, 0, SEEK_CUR), 0);
  CHECK_EQUAL(lseek(fd, 5, SEEK_HOLE), 1 << 20);
  CHECK_EQUAL(lseek64(fd, 0, SEEK_CUR), 1 << 20);
  CHECK(lseek(fd, 1 << 20, SEEK_DATA) == -1 && errno == ENXIO);
  CHECK(lseek(fd, -1, SEEK_HOLE) == -1 && errno == ENXIO);
  CHECK_EQUAL(lseek(fd, -1, SEEK_END), (1 << 20) - 1);

  CHECK_EQUAL(fallocate(fd, 0, 1 << 20, 100), 0);
  CHECK_EQUAL(fallocate(fd, FALLOC_FL_KEEP_SIZE, 1 << 21, 100), 0);
  CHECK_EQUAL(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 699999, 3), 0);
  char byte = 'y';
  CHECK(pread(fd, &byte, 1, 700000) == 1 && byte == 0);
  const int others[] = {FALLOC_FL_ZERO_RANGE, FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE,
                        FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_UNSHARE_RANGE};
  for (int i = 0; i < 5; ++i) {
    CHECK(fallocate(fd, others[i], 0, 65536) == -1 && errno == EOPNOTSUPP);
  }
  struct stat s;
  CHECK(fstat(fd, &s) == 0 && s.st_size == (1 << 20) + 100);
  CHECK_EQUAL(close(fd), 0);
}

static void questions(void) {
  const int fd = make("asked", 0);
  int size = 0;
  CHECK(ioctl(fd, FIGETBSZ, &size) == 0 && size == 4096);
  CHECK(ioctl(fd, FICLONE, fd) == -1 && errno == EOPNOTSUPP);
  long flags = 0;
  CHECK(ioctl(fd, FS_IOC_GETFLAGS, &flags) == -1 && errno == ENOTTY);
  CHECK(ioctl(fd, FIONREAD, &size) == 0 && size == 0);
  CHECK(ioctl(99, FIGETBSZ, &size) == -1 && errno == EBADF);
  struct {
    struct file_handle handle;
    char bytes[MAX_HANDLE_SZ];
  } h = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
  int mount = 0;
  CHECK(name_to_handle_at(AT_FDCWD, "asked", &h.handle, &mount, 0) == -1 && errno == EOPNOTSUPP);
  struct statx x;
  CHECK_EQUAL(statx(AT_FDCWD, "asked", 0, STATX_ALL, &x), 0);
  CHECK(x.stx_attributes == 0 && x.stx_attributes_mask == 0 && x.stx_mnt_id == 0);
  CHECK_EQUAL(close(fd), 0);
}

static void direct(void) {
  const int fd = make("direct", O_DIRECT);
  CHECK_EQUAL(write(fd, "odd", 3), 3);  // not a multiple of a block
  CHECK_EQUAL(fcntl(fd, F_SETFL, O_DIRECT | O_APPEND), 0);
  CHECK_EQUAL(write(fd, "der", 3), 3);
  CHECK((fcntl(fd, F_GETFL) & O_APPEND) != 0);
  CHECK_EQUAL(close(fd), 0);
}

static void copies(const char* elsewhere) {
  const int from = make("from", 0), to = make(elsewhere, 0);
  for (int i = 0; i < 100000; ++i) CHECK_EQUAL(write(from, "0123456789" + i % 10, 1), 1);
  off64_t at = 10;
  CHECK_EQUAL(copy_file_range(from, &at, to, NULL, 200000, 0), 99990);
  CHECK_EQUAL(at, 100000);
  CHECK_EQUAL(copy_file_range(from, &at, to, NULL, 1, 0), 0);
  CHECK_EQUAL(lseek(to, 0, SEEK_CUR), 99990);
  off64_t there = 50;
  CHECK_EQUAL(lseek(from, 99998, SEEK_SET), 99998);
  CHECK_EQUAL(copy_file_range(from, NULL, to, &there, 100, 0), 2);
  CHECK_EQUAL(there, 52);
  char bytes[4] = "";
  CHECK(pread(to, bytes, 3, 50) == 3 && strcmp(bytes, "892") == 0);
  CHECK_EQUAL(close(from), 0);
  CHECK_EQUAL(close(to), 0);
}

static void pages(void) {
  unsigned char there[4] = {0};
  char* const at = mmap(NULL, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  CHECK_EQUAL(mincore(at, 4 * 4096 - 1, there), 0);
  CHECK(there[0] == 1 && there[3] == 1);
  CHECK_EQUAL(munmap(at, 4 * 4096), 0);
  CHECK(mincore(at, 4096, there) == -1 && errno == ENOMEM);
}

// --- walks --------------------------------------------------------------------------------------

static int seen;

static void as_stat(const char* path, const struct stat* told) {
  struct stat s;
  CHECK_EQUAL(lstat(path, &s), 0);
  CHECK_EQUAL(told->st_ino, s.st_ino);
  CHECK_EQUAL(told->st_dev, s.st_dev);
  CHECK_EQUAL(told->st_mtim.tv_sec, s.st_mtim.tv_sec);
  CHECK_EQUAL(told->st_mtim.tv_nsec, s.st_mtim.tv_nsec);
  CHECK_EQUAL(told->st_ctim.tv_nsec, s.st_ctim.tv_nsec);
  ++seen;
}

static int at_level(const char* path, const struct stat* s, int kind, struct FTW* at) {
  (void)kind;
  as_stat(path, s);
  if (at->level == 0 && seen == 1) {  // an entry within
    const int before = seen;
    CHECK_EQUAL(nftw("tree/sub", at_level, 4, FTW_PHYS), 0);
    CHECK_EQUAL(seen - before, 2);
    seen = 1;
  }
  return 0;
}

static int changed_into(const char* path, const struct stat* s, int kind, struct FTW* at) {
  (void)kind;
  as_stat(path + at->base, s);
  return 0;
}

static int simple(const char* path, const struct stat* s, int kind) {
  (void)kind;
  as_stat(path, s);
  return seen == 3 ? 77 : 0;
}

static int no_dots(const struct dirent* e) { return e->d_name[0] != '.'; }

static void walks(void) {
  CHECK(mkdir("tree", 0755) == 0 && mkdir("tree/sub", 0755) == 0);
  CHECK_EQUAL(close(make("tree/a", 0)), 0);
  CHECK_EQUAL(close(make("tree/sub/b", 0)), 0);
  CHECK_EQUAL(symlink("a", "tree/link"), 0);
  seen = 0;
  CHECK_EQUAL(nftw("tree", at_level, 4, FTW_PHYS), 0);
  CHECK_EQUAL(seen, 5);
  seen = 0;
  CHECK_EQUAL(nftw("tree", changed_into, 4, FTW_PHYS | FTW_CHDIR), 0);
  CHECK_EQUAL(seen, 5);
  seen = 0;
  CHECK_EQUAL(unlink("tree/link"), 0);
  CHECK_EQUAL(ftw("tree", simple, 4), 77);

  seen = 0;
  char* const roots[] = {"tree", NULL};
  FTS* const walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
  for (FTSENT* e; (e = fts_read(walk)) != NULL;) as_stat(e->fts_accpath, e->fts_statp);
  CHECK_EQUAL(fts_close(walk), 0);
  CHECK_EQUAL(seen, 6);  // directories are counted twice

  struct dirent** list;
  const int count = scandir("tree", &list, no_dots, alphasort);
  CHECK_EQUAL(count, 2);
  for (int i = 0; i < count; ++i) {
    char path[300];
    snprintf(path, sizeof path, "tree/%s", list[i]->d_name);
    struct stat s;
    CHECK(lstat(path, &s) == 0 && s.st_ino == list[i]->d_ino);
    free(list[i]);
  }
  free(list);
}

static void in(const char* place, const char* elsewhere) {
  char directory[64], other[64];
  snprintf(directory, sizeof directory, "%s/file_rules.XXXXXX", place);
  snprintf(other, sizeof other, "%s/file_rules.XXXXXX", elsewhere);
  CHECK(mkdtemp(directory) != NULL && chdir(directory) == 0);
  CHECK(close(mkstemp(other)) == 0);
  holes();
  questions();
  direct();
  copies(other);
  copies("beside");
  walks();
  CHECK_EQUAL(unlink(other), 0);
  CHECK_EQUAL(chdir("/"), 0);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", directory);
  CHECK_EQUAL(system(command), 0);
}

int main(void) {
  in("/var/tmp", "/dev/shm");
  in("/dev/shm", "/var/tmp");
  pages();
  return succeed();
}
