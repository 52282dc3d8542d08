// SPDX-License-Identifier: Apache-2.0
// Operations on a descriptor are reported with the file's current name; a close is reported only
// for the last descriptor of an open file.
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "../inotify.h"

static int fd;

static void reads_and_writes(void) {
  char b[8];
  const int f = open("f", O_RDWR);
  EXPECT(fd, "1 open f");
  CHECK(write(f, "abcd", 4) == 4 && write(f, "", 0) == 0 && pwrite(f, "e", 1, 4) == 1);
  EXPECT(fd, "1 modify f");
  CHECK_EQUAL(read(f, b, 8), 1);
  EXPECT(fd, "1 access f");
  CHECK_EQUAL(read(f, b, 8), 0);
  CHECK_EQUAL(lseek(f, 0, SEEK_SET), 0);
  EXPECT(fd, "");
  const struct iovec v = {b, 8};
  CHECK_EQUAL(readv(f, &v, 1), 5);
  CHECK_EQUAL(ftruncate(f, 100), 0);
  CHECK_EQUAL(pread(f, b, 1, 50), 1);
  CHECK_EQUAL(posix_fallocate(f, 0, 200), 0);
  EXPECT(fd, "1 access f, 1 modify f, 1 access f, 1 modify f");
  CHECK_EQUAL(close(f), 0);
  EXPECT(fd, "1 close_write f");
  CHECK_EQUAL(truncate("f", 3), 0);
  EXPECT(fd, "1 modify f");
  CHECK_EQUAL(close(open("f", O_WRONLY | O_TRUNC)), 0);
  EXPECT(fd, "1 open f, 1 modify f, 1 close_write f");
  CHECK_EQUAL(close(open("f", O_PATH)), 0);
  EXPECT(fd, "");
}

static void attributes(void) {
  const struct timespec now_and_none[2] = {{1, 0}, {0, UTIME_OMIT}},
                        none_and_now[2] = {{0, UTIME_OMIT}, {1, 0}}, both[2] = {{1, 0}, {1, 0}};
  CHECK(chmod("f", 0640) == 0 && chmod("f", 0600) == 0);
  EXPECT(fd, "1 attrib f");
  CHECK_EQUAL(utimensat(AT_FDCWD, "f", both, 0), 0);
  CHECK_EQUAL(utimensat(AT_FDCWD, "f", now_and_none, 0), 0);
  CHECK_EQUAL(utimensat(AT_FDCWD, "f", none_and_now, 0), 0);
  EXPECT(fd, "1 attrib f, 1 access f, 1 modify f");
  const int f = open("f", O_RDONLY);
  CHECK(fchmod(f, 0644) == 0 && fchown(f, (uid_t)-1, (gid_t)-1) == 0 && close(f) == 0);
  events_at(fd);
}

static void copies(void) {
  const int in = open("f", O_RDWR | O_TRUNC), out = open("g", O_CREAT | O_WRONLY, 0600);
  CHECK_EQUAL(write(in, "abcdefgh", 8), 8);
  events_at(fd);
  off_t at = 0;
  CHECK_EQUAL(sendfile(out, in, &at, 4), 4);
  EXPECT(fd, "1 access f, 1 modify g");
  off64_t from = 4;
  CHECK_EQUAL(copy_file_range(in, &from, out, NULL, 4, 0), 4);
  EXPECT(fd, "1 access f, 1 modify g");
  CHECK(close(in) == 0 && close(out) == 0 && unlink("g") == 0);
  EXPECT(fd, "1 close_write f, 1 close_write g, 1 delete g");
}

static void shared_descriptors(void) {
  const int f = open("f", O_RDONLY), again = dup(f), own = open("f", O_RDONLY);
  EXPECT(fd, "1 open f");
  CHECK_EQUAL(close(f), 0);
  EXPECT(fd, "");
  const pid_t child = fork();
  if (child == 0) {
    close(own);
    _exit(0);
  }
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  EXPECT(fd, "");
  CHECK_EQUAL(dup2(own, again), again);
  EXPECT(fd, "1 close f");
  CHECK_EQUAL(close(own), 0);
  EXPECT(fd, "");
  CHECK_EQUAL(rename("f", "g"), 0);
  CHECK_EQUAL(close(again), 0);
  EXPECT(fd, "1 from f, 1 to g +, 1 close g");
  CHECK_EQUAL(rename("g", "f"), 0);
  events_at(fd);
}

static void directories(void) {
  CHECK_EQUAL(mkdir("d", 0700), 0);
  EXPECT(fd, "1 create/ d");
  DIR* const d = opendir("d");
  CHECK(d != NULL && readdir(d) != NULL);
  while (readdir(d) != NULL) {
  }
  CHECK_EQUAL(closedir(d), 0);
  EXPECT(fd, "1 open/ d, 1 access/ d, 1 close/ d");
  DIR* const here = opendir(".");
  CHECK_EQUAL(closedir(here), 0);
  EXPECT(fd, "1 open/, 1 close/");
  CHECK_EQUAL(rmdir("d"), 0);
  EXPECT(fd, "1 delete/ d");
}

int main(void) {
  enter_directory();
  make_file("f");
  fd = inotify_init1(IN_NONBLOCK);
  CHECK_EQUAL(inotify_add_watch(fd, ".", IN_ALL_EVENTS), 1);
  reads_and_writes();
  attributes();
  copies();
  shared_descriptors();
  directories();
  CHECK(close(fd) == 0 && unlink("f") == 0);
  leave_directory();
  return succeed();
}
