// SPDX-License-Identifier: Apache-2.0
// A descriptor that the program did not open does not exist: no call reads, writes, maps, copies or
// passes it, for any number up to the limit.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../small.h"
#include "unix_rights.h"

static int zero, out, epoll, pipes[2];
static char bytes[64];

// Whether `result` and errno report that there is no such descriptor.
static int none(long result) { return result == -1 && errno == EBADF; }

#define REFUSES(call)  \
  do {                 \
    errno = 0;         \
    CHECK(none(call)); \
  } while (0)

static int prints(int fd, const char* form, ...) {
  va_list list;
  va_start(list, form);
  const int n = vdprintf(fd, form, list);
  va_end(list);
  return n;
}

static void check_bytes(int fd) {
  struct iovec v = {bytes, 1};
  loff_t at = 0;
  REFUSES(read(fd, bytes, 1));
  REFUSES(readv(fd, &v, 1));
  REFUSES(pread(fd, bytes, 1, 0));
  REFUSES(preadv(fd, &v, 1, 0));
  REFUSES(preadv2(fd, &v, 1, 0, 0));
  REFUSES(write(fd, bytes, 1));
  REFUSES(writev(fd, &v, 1));
  REFUSES(pwrite(fd, bytes, 1, 0));
  REFUSES(pwritev(fd, &v, 1, 0));
  REFUSES(pwritev2(fd, &v, 1, 0, 0));
  REFUSES(prints(fd, "x"));
  REFUSES(sendfile(fd, zero, NULL, 1));
  REFUSES(sendfile(out, fd, NULL, 1));
  REFUSES(copy_file_range(fd, NULL, out, NULL, 1, 0));
  REFUSES(copy_file_range(zero, NULL, fd, NULL, 1, 0));
  REFUSES(splice(fd, &at, pipes[1], NULL, 1, 0));
  REFUSES(splice(pipes[0], NULL, fd, &at, 1, 0));
  REFUSES(vmsplice(fd, &v, 1, 0));
  REFUSES(tee(fd, pipes[1], 1, 0));
}

static void check_file(int fd) {
  struct stat s;
  struct statfs fs;
  struct statvfs vfs;
  struct timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  struct timeval dates[2] = {{0, 0}, {0, 0}};
  REFUSES(fstat(fd, &s));
  REFUSES(fstatat(fd, "", &s, AT_EMPTY_PATH));
  REFUSES(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, (struct statx*)bytes));
  REFUSES(fstatfs(fd, &fs));
  REFUSES(fstatvfs(fd, &vfs));
  REFUSES(ftruncate(fd, 0));
  REFUSES(fallocate(fd, 0, 0, 1));
  CHECK_EQUAL(posix_fallocate(fd, 0, 1), EBADF);
  REFUSES(lseek(fd, 0, SEEK_CUR));
  REFUSES(fsync(fd));
  REFUSES(fdatasync(fd));
  REFUSES(syncfs(fd));
  REFUSES(sync_file_range(fd, 0, 1, 0));
  REFUSES(futimens(fd, times));
  REFUSES(futimes(fd, dates));
  REFUSES(flock(fd, LOCK_SH | LOCK_NB));
  REFUSES(lockf(fd, F_TEST, 0));
  REFUSES(linkat(fd, "", AT_FDCWD, "never", AT_EMPTY_PATH));
  CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EBADF);
}

static void check_directory(int fd) {
  struct stat s;
  REFUSES(fchdir(fd));
  REFUSES(openat(fd, "never", O_RDONLY));
  REFUSES(fstatat(fd, "never", &s, 0));
  REFUSES(mkdirat(fd, "never", 0700));
  REFUSES(mkfifoat(fd, "never", 0600));
  REFUSES(mknodat(fd, "never", S_IFREG | 0600, 0));
  REFUSES(unlinkat(fd, "never", 0));
  REFUSES(renameat(fd, "never", AT_FDCWD, "other"));
  REFUSES(renameat2(AT_FDCWD, ".", fd, "other", RENAME_NOREPLACE));
  REFUSES(linkat(fd, "never", AT_FDCWD, "other", 0));
  REFUSES(symlinkat("never", fd, "other"));
  REFUSES(utimensat(fd, "never", NULL, 0));
  REFUSES(syscall(SYS_getdents64, fd, bytes, sizeof bytes));
  CHECK(fdopendir(fd) == NULL && errno == EBADF);
  CHECK(fdopen(fd, "r") == NULL && errno == EBADF);
}

static void check_descriptor(int fd) {
  REFUSES(fcntl(fd, F_GETFD));
  REFUSES(fcntl(fd, F_SETFD, 0));
  REFUSES(fcntl(fd, F_GETFL));
  REFUSES(fcntl(fd, F_DUPFD, 0));
  REFUSES(dup(fd));
  REFUSES(dup2(fd, 5000));
  REFUSES(dup3(fd, zero, 0));
  REFUSES(ioctl(fd, FIONREAD, bytes));
  REFUSES(close(fd));
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 1);
  CHECK_EQUAL(p.revents, POLLNVAL);
  struct epoll_event e = {EPOLLIN, {.u64 = 0}};
  REFUSES(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e));
  REFUSES(epoll_ctl(fd, EPOLL_CTL_ADD, zero, &e));
  REFUSES(epoll_wait(fd, &e, 1, 0));
  sigset_t none_of_them;
  sigemptyset(&none_of_them);
  REFUSES(signalfd(fd, &none_of_them, 0));
  struct itimerspec spec = {{0, 0}, {0, 0}};
  REFUSES(timerfd_settime(fd, 0, &spec, NULL));
}

static void check_socket(int fd) {
  struct sockaddr a;
  socklen_t n = sizeof a;
  int value = 0;
  struct msghdr m = {0};
  REFUSES(bind(fd, &a, sizeof a));
  REFUSES(listen(fd, 1));
  REFUSES(accept(fd, NULL, NULL));
  REFUSES(connect(fd, &a, sizeof a));
  REFUSES(shutdown(fd, SHUT_RD));
  REFUSES(getsockname(fd, &a, &n));
  REFUSES(getpeername(fd, &a, &n));
  n = sizeof value;
  REFUSES(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &n));
  REFUSES(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof value));
  REFUSES(recv(fd, bytes, 1, MSG_DONTWAIT));
  REFUSES(recvmsg(fd, &m, MSG_DONTWAIT));
  REFUSES(send(fd, bytes, 1, MSG_DONTWAIT));
  REFUSES(sendmsg(fd, &m, MSG_DONTWAIT));
}

int main(void) {
  struct rlimit limit;
  int pair[2];
  zero = open("/dev/zero", O_RDONLY);
  out = memfd_create("out", 0);
  CHECK(zero >= 0 && out >= 0);
  epoll = epoll_create1(0);
  CHECK_EQUAL(pipe2(pipes, O_NONBLOCK), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  enum { kLooked = 320 };
  const int end = (int)limit.rlim_cur, first = end > kLooked + 32 ? end - kLooked : 32;
  for (int fd = first; fd < end; ++fd) {
    check_bytes(fd);
    check_file(fd);
    check_directory(fd);
    check_descriptor(fd);
    check_socket(fd);
    REFUSES(try_to_send(pair[0], fd));
  }
  return succeed();
}
