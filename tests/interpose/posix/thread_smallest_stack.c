// SPDX-License-Identifier: Apache-2.0
// On a thread of PTHREAD_STACK_MIN and in a handler on the smallest alternate stack, calls that use
// no user stack in the kernel still work: vectors, copies, polls, messages, files, times.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "../child.h"

enum { kBytes = 20000 };
static char bytes[kBytes], read_back[kBytes];
static int ends[2], pair[2], file;

static void use_everything(void) {
  struct iovec out[4], in[2] = {{read_back, 1000}, {read_back + 1000, kBytes - 1000}};
  for (int i = 0; i < 4; ++i) out[i] = (struct iovec){bytes + i * 1000, 1000};
  CHECK_EQUAL(writev(ends[1], out, 4), 4000);
  CHECK_EQUAL(readv(ends[0], in, 2), 4000);
  CHECK_EQUAL(sendfile(ends[1], file, &(off_t){0}, kBytes), kBytes);
  CHECK_EQUAL(read(ends[0], read_back, kBytes), kBytes);
  struct msghdr message = {.msg_iov = out, .msg_iovlen = 4};
  CHECK_EQUAL(sendmsg(pair[1], &message, 0), 4000);
  message.msg_iov = in;
  message.msg_iovlen = 2;
  CHECK_EQUAL(recvmsg(pair[0], &message, 0), 4000);
  struct pollfd watched = {ends[0], POLLIN, 0};
  CHECK_EQUAL(poll(&watched, 1, 0), 0);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  CHECK_EQUAL(select(ends[0] + 1, &set, NULL, NULL, &(struct timeval){0, 0}), 0);
  const int epoll = epoll_create1(0);
  static struct epoll_event events[100];
  struct epoll_event event = {EPOLLIN, {0}};
  CHECK_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event), 0);
  CHECK_EQUAL(epoll_wait(epoll, events, 100, 0), 0);
  CHECK_EQUAL(close(epoll), 0);
  CHECK_EQUAL(splice(ends[0], NULL, file, &(off64_t){kBytes}, 1, SPLICE_F_NONBLOCK), -1);
  struct stat s;
  const int made = open("made", O_CREAT | O_RDWR, 0600);
  CHECK(made >= 0);
  CHECK_EQUAL(fstat(made, &s), 0);
  CHECK_EQUAL(close(made), 0);
  CHECK_EQUAL(unlink("made"), 0);
}

static void* in_thread(void* x) {
  use_everything();
  return x;
}

static volatile sig_atomic_t handled;
static void handler(int signo) {
  (void)signo;
  use_everything();
  ++handled;
}

// The memory below the alternate stack belongs to other data.
enum { kBelow = 65536, kStack = 8192 };
static unsigned char memory[kBelow + kStack] __attribute__((aligned(64)));

static void check_handler(void) {
  for (int i = 0; i < kBelow; ++i) memory[i] = (unsigned char)(i * 7);
  const stack_t stack = {.ss_sp = memory + kBelow, .ss_size = kStack};
  CHECK_EQUAL(sigaltstack(&stack, NULL), 0);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(handled, 1);
  for (int i = 0; i < kBelow; ++i) CHECK_EQUAL(memory[i], (unsigned char)(i * 7));
}

// Calls that a handler leaves by a jump leave nothing behind, however many there are.
static sigjmp_buf place;
static void leave(int signo) { siglongjmp(place, signo); }

static void check_jumps(void) {
  CHECK(signal(SIGALRM, leave) != SIG_ERR);
  static struct iovec many[1000];
  for (int i = 0; i < 1000; ++i) many[i] = (struct iovec){read_back + i, 1};
  for (volatile int i = 0; i < 100; ++i) {
    if (sigsetjmp(place, 1) == 0) {
      const struct itimerval soon = {{0, 0}, {0, 1000}};
      CHECK_EQUAL(setitimer(ITIMER_REAL, &soon, NULL), 0);
      // A read of many vectors that never completes.
      struct msghdr message = {.msg_iov = many, .msg_iovlen = 1000};
      (void)recvmsg(pair[0], &message, 0);
      CHECK(!"it came back");
    }
  }
  use_everything();
}

int main(void) {
  CHECK_EQUAL(pipe(ends), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  char name[] = "/tmp/smallest.XXXXXX";
  CHECK(mkdtemp(name) != NULL);
  CHECK_EQUAL(chdir(name), 0);
  file = open("file", O_CREAT | O_RDWR, 0600);
  CHECK_EQUAL(write(file, bytes, kBytes), kBytes);
  pthread_attr_t attributes;
  CHECK_EQUAL(pthread_attr_init(&attributes), 0);
  CHECK_EQUAL(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)), 0);
  pthread_t thread;
  CHECK_EQUAL(pthread_create(&thread, &attributes, in_thread, NULL), 0);
  CHECK_EQUAL(pthread_join(thread, NULL), 0);
  check_handler();
  check_jumps();
  CHECK_EQUAL(unlink("file"), 0);
  CHECK_EQUAL(rmdir(name), 0);
  return succeed();
}
