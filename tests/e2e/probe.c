// SPDX-License-Identifier: Apache-2.0
// Hits a group with a fault and measures how long no new connection was answered, and how long one
// existing connection was not.
//
//   probe ADDRESS PORT SIGNAL PID...
//
// Sends SIGNAL to the processes (0: the caller has made the fault), then opens connections and
// sends PING on each until a redis answers +PONG. It starts a new attempt 100 us after one broke,
// and another one when an attempt is unanswered after 1 ms, because that one may be stuck in a
// stopped replica. The kept connection sends one PING after another, all the time. The result is
// the end of its longest silence after the fault, because the old leader's last answers may still
// arrive. Prints the time of the fault and of the first answer, CLOCK_MONOTONIC ns, the number of
// attempts, and when the kept connection was answered again (0: the caller made the fault, and
// there is none). The probe must not wait for a processor while it measures, so with the privilege
// it runs at a real-time priority. Exit status: 0 answered, 1 not answered within 30 s, 2 wrong
// use, 3 the kept connection broke.
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

enum { kAttemptsMax = 64, kPongBytes = 7 };
static const uint64_t kRetryNs = 100 * 1000, kStuckNs = 1000 * 1000, kGiveUpNs = 30ULL * 1000000000;

static struct sockaddr_in server;
static struct pollfd attempts[kAttemptsMax];
static int count, started;
static struct {
  int fd;                         // -1: none
  int answered_bytes;             // bytes of the answer
  uint64_t last, longest, again;  // again: the end of the longest silence
} kept = {-1, 0, 0, 0, 0};

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

// 1: answered; 0: still waits; -1: broken.
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

static void ask_kept(void) {
  kept.answered_bytes = 0;
  if (send(kept.fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6) exit(3);
}

// Silences before `since` do not count.
static void expect_kept(uint64_t since) {
  char answer[kPongBytes];
  const ssize_t n = recv(kept.fd, answer, (size_t)(kPongBytes - kept.answered_bytes), 0);
  if (n <= 0) exit(3);
  kept.answered_bytes += (int)n;
  if (kept.answered_bytes < kPongBytes) return;
  const uint64_t now = now_ns(), from = kept.last > since ? kept.last : since;
  if (now - from > kept.longest) {
    kept.longest = now - from;
    kept.again = now;
  }
  kept.last = now;
}

static void open_kept(void) {
  const int one = 1;
  kept.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(kept.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(kept.fd, (struct sockaddr*)&server, sizeof server) != 0) exit(3);
  ask_kept();
  while (kept.last == 0) expect_kept(now_ns());
  kept.longest = 0;
}

// Waits at most `wait_ns`; returns when a new connection was answered, or 0.
static uint64_t look(uint64_t wait_ns, uint64_t fault) {
  struct pollfd all[kAttemptsMax + 1];
  memcpy(all, attempts, sizeof attempts);
  all[count] = (struct pollfd){kept.fd, POLLIN, 0};
  const struct timespec wait = {0, (long)wait_ns};
  if (ppoll(all, (nfds_t)count + 1, &wait, NULL) <= 0) return 0;
  if (all[count].revents != 0) {
    expect_kept(fault);
    if (kept.answered_bytes == kPongBytes) ask_kept();
  }
  for (int i = count - 1; i >= 0; --i) {
    if (all[i].revents == 0) continue;
    attempts[i].revents = all[i].revents;
    const int events = advance(&attempts[i]);
    if (events == 1) return now_ns();
    if (events == -1) drop(i);
  }
  return 0;
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
  if (signo != 0) open_kept();
  const uint64_t fault = now_ns();
  for (int i = 4; i < argc; ++i) {
    if (kill((pid_t)atoi(argv[i]), signo) != 0) return 2;
  }
  if (kept.fd >= 0) ask_kept();
  uint64_t next = 0, answered = 0;  // when to start another attempt; the first answer
  for (uint64_t now = now_ns(); now < fault + kGiveUpNs; now = now_ns()) {
    // By then the kept connection has sent a PING to the new leader, too.
    if (answered != 0 && (kept.fd < 0 || kept.last > answered)) {
      printf("%llu %llu %d %llu\n", (unsigned long long)fault, (unsigned long long)answered,
             started, (unsigned long long)kept.again);
      return 0;
    }
    if (answered == 0 && now >= next) {
      start();
      next = now + (count == 0 ? kRetryNs : kStuckNs);
      continue;
    }
    const int before = count;
    const uint64_t answered_bytes = look(answered == 0 ? next - now : kStuckNs, fault);
    if (answered == 0) answered = answered_bytes;
    while (answered != 0 && count > 0) drop(0);
    if (count < before && next > now_ns() + kRetryNs) next = now_ns() + kRetryNs;
  }
  return 1;
}
