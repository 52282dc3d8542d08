// SPDX-License-Identifier: Apache-2.0
// The identity of a file: its inode number stays over rename, hard link, writing and closing,
// belongs to no other file, and is the same in a listing; its times follow the last change.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "check.h"

static struct stat of(const char* path) {
  struct stat s;
  CHECK_EQUAL(lstat(path, &s), 0);
  return s;
}

static int same(struct stat a, struct stat b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static long long time_of(struct stat s) {
  return s.st_mtim.tv_sec * 1000000000LL + s.st_mtim.tv_nsec;
}

static void make(const char* path, const char* text) {
  const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
  CHECK(fd >= 0);
  CHECK_EQUAL(write(fd, text, strlen(text)), strlen(text));
  CHECK_EQUAL(close(fd), 0);
}

static void identity(void) {
  make("a", "first");
  const struct stat before = of("a");
  make("b", "second");
  CHECK(!same(before, of("b")));
  CHECK_EQUAL(rename("a", "c"), 0);
  CHECK(same(before, of("c")));
  CHECK_EQUAL(link("c", "d"), 0);
  CHECK(same(before, of("d")));
  CHECK_EQUAL(of("d").st_nlink, 2);
  const int fd = open("d", O_RDWR | O_APPEND);
  CHECK_EQUAL(write(fd, "more", 4), 4);
  struct stat open_one;
  CHECK_EQUAL(fstat(fd, &open_one), 0);
  CHECK(same(before, open_one));
  CHECK_EQUAL(unlink("c"), 0);
  CHECK_EQUAL(unlink("d"), 0);
  CHECK_EQUAL(fstat(fd, &open_one), 0);
  CHECK(same(before, open_one));
  make("d", "another");
  CHECK(!same(of("d"), open_one));
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(symlink("d", "s"), 0);
  CHECK(!same(of("s"), of("d")));
  struct stat behind;
  CHECK_EQUAL(stat("s", &behind), 0);
  CHECK(same(behind, of("d")));
  struct statx x;
  CHECK_EQUAL(statx(AT_FDCWD, "d", 0, STATX_INO, &x), 0);
  CHECK_EQUAL(x.stx_ino, behind.st_ino);
  printf("identity holds\n");
}

// 200 files that are created and removed: the kernel reuses their numbers, Crane does not.
static void recycled(void) {
  make("kept", "");
  const struct stat kept = of("kept");
  for (int i = 0; i < 200; ++i) {
    make("passing", "x");
    CHECK(!same(of("passing"), kept));
    CHECK_EQUAL(unlink("passing"), 0);
  }
  CHECK(same(of("kept"), kept));
  printf("recycled\n");
}

static void pass_time(void) { CHECK_EQUAL(usleep(20000), 0); }

static void times(void) {
  const struct stat directory = of(".");
  pass_time();
  const int fd = open("t", O_CREAT | O_EXCL | O_RDWR, 0644);
  CHECK(time_of(of(".")) > time_of(directory));
  const struct stat empty = of("t");
  CHECK(time_of(empty) > time_of(directory));
  pass_time();
  CHECK_EQUAL(time_of(of("t")), time_of(empty));  // it was not changed
  CHECK_EQUAL(write(fd, "x", 1), 1);
  pass_time();
  const struct stat written = of("t");  // by name, while it is open
  CHECK(time_of(written) > time_of(empty));
  pass_time();
  CHECK_EQUAL(time_of(of("t")), time_of(written));
  const struct timespec given[2] = {{1000, 1}, {2000, 2}};
  CHECK_EQUAL(futimens(fd, given), 0);
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(time_of(of("t")), 2000000000002LL);
  CHECK_EQUAL(truncate("t", 0), 0);
  CHECK(time_of(of("t")) > time_of(written));
  const struct stat full = of(".");
  pass_time();
  CHECK_EQUAL(mkdir("m", 0755), 0);
  CHECK(time_of(of("m")) > time_of(full) && time_of(of(".")) > time_of(full));
  const struct stat made = of(".");
  pass_time();
  CHECK_EQUAL(rmdir("m/"), 0);
  CHECK(time_of(of(".")) > time_of(made));
  printf("times follow\n");
}

static void sockets(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "socket"};
  const struct stat before = of(".");
  pass_time();
  CHECK_EQUAL(bind(fd, (struct sockaddr*)&a, sizeof a), 0);
  CHECK(S_ISSOCK(of("socket").st_mode) && time_of(of("socket")) > time_of(before));
  close(fd);
  unlink("socket");
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // readdir_r: servers call it
static void listing(void) {
  CHECK_EQUAL(mkdir("many", 0755), 0);
  char name[64];
  for (int i = 0; i < 3000; ++i) {
    sprintf(name, "many/a-name-of-some-length-%d", i);
    make(name, "");
  }
  DIR* d = opendir("many");
  CHECK(d != NULL && dirfd(d) >= 0);
  int entries = 0, right = 0;
  long middle = -1;
  char there[256] = "";
  for (struct dirent* e; (e = readdir(d)) != NULL; ++entries) {
    if (e->d_name[0] == '.') continue;
    struct stat s;
    CHECK_EQUAL(fstatat(dirfd(d), e->d_name, &s, 0), 0);
    right += s.st_ino == e->d_ino && e->d_type == DT_REG;
    if (entries == 1000) {
      middle = telldir(d);
      e = readdir(d);
      strcpy(there, e->d_name);
      ++entries;
      ++right;
    }
  }
  printf("entries %d, right %d\n", entries, right);
  seekdir(d, middle);
  CHECK(strcmp(readdir(d)->d_name, there) == 0);
  make("many/late", "");
  rewinddir(d);
  int late = 0;
  struct dirent into, *e;
  while (readdir_r(d, &into, &e) == 0 && e != NULL) late += strcmp(e->d_name, "late") == 0;
  CHECK_EQUAL(late, 1);
  CHECK_EQUAL(closedir(d), 0);
  errno = 0;
  CHECK(opendir("kept") == NULL && errno == ENOTDIR);
  const int fd = open("kept", O_RDONLY);
  CHECK(fdopendir(fd) == NULL && errno == ENOTDIR);
  close(fd);
  d = fdopendir(open("many", O_RDONLY | O_DIRECTORY));
  while ((e = readdir(d)) != NULL) {
    if (e->d_name[0] != '.') CHECK_EQUAL(unlinkat(dirfd(d), e->d_name, 0), 0);
  }
  CHECK_EQUAL(closedir(d), 0);
  CHECK_EQUAL(rmdir("many"), 0);
}

int main(void) {
  char directory[] = "/tmp/file_identity.XXXXXX";
  CHECK(mkdtemp(directory) != NULL && chdir(directory) == 0);
  identity();
  recycled();
  times();
  sockets();
  listing();
  for (const char** name = (const char*[]){"b", "d", "s", "kept", "t", NULL}; *name; ++name) {
    CHECK_EQUAL(unlink(*name), 0);
  }
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(rmdir(directory), 0);
  return succeed();
}
