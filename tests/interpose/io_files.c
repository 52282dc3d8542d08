// SPDX-License-Identifier: Apache-2.0
// Files: names, temporary files, virtual modification times, locks between processes, streams.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void names(void) {
  const int fd = open("one", O_RDWR | O_CREAT | O_EXCL, 0644);
  write(fd, "abcdef", 6);
  char b[8] = {0};
  const ssize_t n = pread(fd, b, 3, 2);
  printf("pread %zd %.3s\n", n, b);
  printf("pwrite %zd\n", pwrite(fd, "Z", 1, 5));
  printf("again %d\n", open("one", O_CREAT | O_EXCL | O_WRONLY, 0644) < 0 && errno == EEXIST);
  int result = rename("one", "two");
  printf("rename %d link %d\n", result, link("two", "three"));
  result = unlink("two");
  printf("unlink %d %d\n", result, unlink("two") < 0 && errno == ENOENT);
  ftruncate(fd, 4);
  struct stat s;
  fstat(fd, &s);
  const time_t now = time(NULL);
  printf("size %ld fresh %d\n", (long)s.st_size, s.st_mtime >= now - 5 && s.st_mtime <= now + 5);
  close(fd);
  stat("three", &s);
  printf("after close %d\n", s.st_mtime >= now - 5 && s.st_mtime <= now + 5);
  struct timespec old[2] = {{1000, 0}, {2000, 0}};
  utimensat(AT_FDCWD, "three", old, 0);
  stat("three", &s);
  printf("set %ld\n", (long)s.st_mtime);
  unlink("three");
}

static void temporary(void) {
  char a[] = "tmp.XXXXXX", b[] = "tmp.XXXXXX.txt";
  const int fd = mkstemp(a);
  const int gd = mkostemps(b, 4, O_CLOEXEC);
  printf("temporary %d %d\n", fd >= 0 && strcmp(a, "tmp.XXXXXX") != 0,
         gd >= 0 && strcmp(b + 10, ".txt") == 0);
  close(fd);
  close(gd);
  unlink(a);
  unlink(b);
  FILE* f = tmpfile();
  fprintf(f, "line\n");
  rewind(f);
  char line[16];
  printf("tmpfile %s", fgets(line, sizeof line, f));
  fclose(f);
}

static void streams(void) {
  FILE* f = fopen("stream", "we");
  fprintf(f, "first\nsecond\n");
  fclose(f);
  f = fopen("stream", "a+");
  fprintf(f, "third\n");
  rewind(f);
  char line[32];
  int lines = 0;
  while (fgets(line, sizeof line, f) != NULL) ++lines;
  fclose(f);
  printf("lines %d\n", lines);
  printf("absent %d\n", fopen("absent", "r") == NULL && errno == ENOENT);
  DIR* d = opendir(".");
  int entries = 0;
  while (readdir(d) != NULL) ++entries;
  closedir(d);
  printf("entries %d\n", entries);
  unlink("stream");
}

// The child must wait for the lock until the parent has written.
static void locks(int with_fcntl) {
  int go[2], tried[2];
  pipe(go);
  pipe(tried);
  const int fd = open("lock", O_RDWR | O_CREAT, 0600);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (with_fcntl) fcntl(fd, F_SETLKW, &l);
  const pid_t child = fork();
  if (child == 0) {
    const int mine = open("lock", O_RDWR);
    char c;
    read(go[0], &c, 1);
    const int failed = with_fcntl
                           ? fcntl(mine, F_SETLK, &l) < 0 && (errno == EAGAIN || errno == EACCES)
                           : flock(mine, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    write(tried[1], failed ? "t" : "f", 1);
    if (with_fcntl) {
      fcntl(mine, F_SETLKW, &l);
    } else {
      flock(mine, LOCK_EX);
    }
    char b[8] = {0};
    const ssize_t n = pread(mine, b, sizeof b, 0);
    _exit(n == 4 ? 0 : 1);
  }
  if (!with_fcntl) flock(fd, LOCK_EX);
  write(go[1], "g", 1);
  char taken = 0;
  read(tried[0], &taken, 1);
  pwrite(fd, "done", 4, 0);
  l.l_type = F_UNLCK;
  if (with_fcntl) {
    fcntl(fd, F_SETLK, &l);
  } else {
    flock(fd, LOCK_UN);
  }
  int status = -1;
  waitpid(child, &status, 0);
  printf("taken %c lock %d\n", taken, status);
  close(fd);
  unlink("lock");
}

static void copy(void) {
  int p[2];
  pipe(p);
  const int fd = open("source", O_RDWR | O_CREAT, 0600);
  write(fd, "0123456789", 10);
  off_t at = 3;
  const ssize_t n = sendfile(p[1], fd, &at, 4);
  printf("sendfile %zd at %ld\n", n, (long)at);
  char b[8] = {0};
  read(p[0], b, sizeof b);
  printf("copied %s\n", b);
  close(fd);
  unlink("source");
}

static void random_device(void) {
  const int fd = open("/dev/urandom", O_RDONLY);
  unsigned char a[16] = {0}, b[16] = {0};
  const ssize_t n = read(fd, a, sizeof a);
  printf("random %zd %zd", n, read(fd, b, sizeof b));
  printf(" differ %d\n", memcmp(a, b, sizeof a) != 0);
  close(fd);
  FILE* f = fopen("/dev/urandom", "r");
  printf("stream %zu\n", fread(a, 1, sizeof a, f));
  fclose(f);
}

int main(void) {
  char directory[] = "/tmp/io_files.XXXXXX";
  if (mkdtemp(directory) == NULL || chdir(directory) != 0) return 1;
  umask(022);
  names();
  temporary();
  streams();
  fflush(stdout);
  locks(1);
  fflush(stdout);
  locks(0);
  copy();
  random_device();
  chdir("/");
  printf("empty %d\n", rmdir(directory));
  printf("EXIT-SUCCESS\n");
  return 0;
}
