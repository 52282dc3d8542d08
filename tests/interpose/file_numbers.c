// SPDX-License-Identifier: Apache-2.0
// native: no
// Inode numbers, times, sizes of directories and the order of a listing are the same in every run,
// though the kernel's differ: tmpfs never reuses a number and lists the newest entry first.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static void show(const char* path) {
  struct stat s;
  CHECK_EQUAL(lstat(path, &s), 0);
  CHECK(s.st_ino != 0 && s.st_blksize > 0);
  printf("%-12s dev %lx ino %lu links %lu size %ld blocks %ld mtime %ld.%09ld ctime %ld\n", path,
         (long)s.st_dev, (long)s.st_ino, (long)s.st_nlink, (long)s.st_size, (long)s.st_blocks,
         (long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec, (long)s.st_ctim.tv_sec);
}

static void write_file(const char* path, int bytes) {
  const int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
  for (int i = 0; i < bytes; ++i) CHECK_EQUAL(write(fd, "x", 1), 1);
  show(path);
  CHECK_EQUAL(close(fd), 0);
}

static void list(void) {
  DIR* d = opendir(".");
  char last[256] = "";
  for (struct dirent* e; (e = readdir(d)) != NULL;) {
    printf("%s %lu\n", e->d_name, (long)e->d_ino);
    CHECK(strcmp(last, e->d_name) < 0);
    strcpy(last, e->d_name);
  }
  closedir(d);
}

// The kernel may reuse a number on one replica and not on another: Crane never does.
static void recycled(void) {
  char directory[] = "/tmp/file_numbers.XXXXXX";
  CHECK(mkdtemp(directory) != NULL && chdir(directory) == 0);
  unsigned long last = 0;
  for (int i = 0; i < 20; ++i) {
    struct stat s;
    CHECK_EQUAL(i % 2 ? mkdir("x", 0755) : close(open("x", O_CREAT | O_WRONLY, 0644)), 0);
    CHECK_EQUAL(stat("x", &s), 0);
    CHECK(s.st_ino > last);
    last = s.st_ino;
    CHECK_EQUAL(remove("x"), 0);
  }
  CHECK_EQUAL(rmdir(directory), 0);
}

int main(void) {
  recycled();
  char directory[] = "/dev/shm/file_numbers.XXXXXX";
  CHECK(mkdtemp(directory) != NULL && chdir(directory) == 0);
  static const char* const kNames[] = {"m", "z", "b", "y", "a", "x", "c"};
  for (int i = 0; i < 7; ++i) write_file(kNames[i], 100 * i);
  CHECK_EQUAL(mkdir("sub", 0755), 0);
  CHECK_EQUAL(rename("b", "sub/q"), 0);
  CHECK_EQUAL(link("sub/q", "w"), 0);
  CHECK_EQUAL(unlink("m"), 0);
  write_file("n", 4097);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    write_file("a", 1);
    write_file("of-child", 1);
    fflush(stdout);
    _exit(0);
  }
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  show(".");
  show("sub");
  struct stat full, small;  // how a directory is stored depends on the file system
  CHECK_EQUAL(stat(".", &full), 0);
  CHECK_EQUAL(stat("sub", &small), 0);
  CHECK_EQUAL(full.st_size, small.st_size);
  show("w");
  show("a");
  show("of-child");
  show("/dev/null");
  show("/proc/self");
  list();
  CHECK_EQUAL(unlink("sub/q"), 0);
  CHECK_EQUAL(rmdir("sub"), 0);
  for (const char** name = (const char*[]){"a", "c", "n", "of-child", "w", "x", "y", "z", NULL};
       *name; ++name) {
    CHECK_EQUAL(unlink(*name), 0);
  }
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(rmdir(directory), 0);
  return succeed();
}
