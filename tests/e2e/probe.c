// SPDX-License-Identifier: Apache-2.0
// Hits a group with a fault and measures how long no new connection was answered.
//
//   probe ADDRESS PORT SIGNAL PID...
//
// Sends SIGNAL to the processes (0: the fault was made by the caller), then opens connections and
// asks PING on each until a redis answers +PONG: a new attempt 100 us after one broke, and beside
// one that is still unanswered after 1 ms (it may be stuck in a stopped replica). Prints the time
// of the fault and of the first answer, CLOCK_MONOTONIC ns, and the number of attempts. It is a
// measuring instrument and must not wait for a processor behind what it measures: with the
// privilege it has a real-time priority.
// Exit: 0 answered, 1 not answered within 30 s, 2 wrong use.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kAttemptsMax = 64 };
static const uint64_t kRetryNs = 100 * 1000, kStuckNs = 1000 * 1000, kGiveUpNs = 30ULL * 1000000000;

static struct sockaddr_in server;
static struct pollfd attempts[kAttemptsMax];
static int count, started;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void drop(int i) {
  close(attempts[i].fd);
  attempts[i] = attempts[--count];
}

static void start(void) {
  if (count == kAttemptsMax) drop(0);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ++started;
  if (connect(fd, (struct sockaddr*)&server, sizeof server) != 0 && errno != EINPROGRESS) {
    close(fd);
    return;
  }
  attempts[count++] = (struct pollfd){fd, POLLOUT, 0};
}

// 1: answered; 0: goes on; -1: broken.
static int advance(struct pollfd* p) {
  char answer[16];
  if (p->events == POLLOUT) {
    if ((p->revents & (POLLERR | POLLHUP)) != 0) return -1;
    if (send(p->fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6) return -1;
    p->events = POLLIN;
    return 0;
  }
  const ssize_t n = recv(p->fd, answer, sizeof answer, 0);
  if (n < 0 && errno == EAGAIN) return 0;
  return n >= 5 && memcmp(answer, "+PONG", 5) == 0 ? 1 : -1;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "use: probe ADDRESS PORT SIGNAL PID...\n");
    return 2;
  }
  server.sin_family = AF_INET;
  server.sin_port = htons((uint16_t)atoi(argv[2]));
  if (inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) return 2;
  const int signo = atoi(argv[3]);
  const struct sched_param instrument = {.sched_priority = 2};
  (void)sched_setscheduler(0, SCHED_FIFO, &instrument);
  const uint64_t fault = now_ns();
  for (int i = 4; i < argc; ++i) {
    if (kill((pid_t)atoi(argv[i]), signo) != 0) return 2;
  }
  uint64_t next = 0;  // when to start another attempt
  for (uint64_t now = now_ns(); now < fault + kGiveUpNs; now = now_ns()) {
    if (now >= next) {
      start();
      next = now + (count == 0 ? kRetryNs : kStuckNs);
      continue;
    }
    const struct timespec wait = {0, (long)(next - now)};
    if (ppoll(attempts, (nfds_t)count, &wait, NULL) <= 0) continue;
    for (int i = count - 1; i >= 0; --i) {
      if (attempts[i].revents == 0) continue;
      const int said = advance(&attempts[i]);
      if (said == 1) {
        printf("%llu %llu %d\n", (unsigned long long)fault, (unsigned long long)now_ns(), started);
        return 0;
      }
      if (said == -1) {
        drop(i);
        if (next > now_ns() + kRetryNs) next = now_ns() + kRetryNs;
      }
    }
  }
  return 1;
}
