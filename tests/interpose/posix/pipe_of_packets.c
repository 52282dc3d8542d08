// SPDX-License-Identifier: Apache-2.0
// A pipe of packets (O_DIRECT): a read returns one write, the rest of a short read is lost, a
// packet takes a page of the pipe's room whatever its size, and a writer waits for room.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>

#include "../small.h"

enum { kPackets = 200, kPage = 4096, kPages = 16 };
static int fds[2];

static void* write_packets(void* unused) {
  (void)unused;
  for (int i = 0; i < kPackets; ++i) {
    char text[8];
    const int n = snprintf(text, sizeof text, "%d", i);
    CHECK_EQUAL(write(fds[1], text, (size_t)n), n);
  }
  return NULL;
}

static int is_ready(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

// One at a time, though the writer is ahead until the pipe is full.
static void check_boundaries(void) {
  pthread_t writer;
  CHECK_EQUAL(pipe2(fds, O_DIRECT), 0);
  CHECK_EQUAL(pthread_create(&writer, NULL, write_packets, NULL), 0);
  for (int i = 0; i < kPackets; ++i) {
    char text[8], got[64];
    const int n = snprintf(text, sizeof text, "%d", i);
    CHECK_EQUAL(read(fds[0], got, sizeof got), n);
    CHECK_EQUAL(memcmp(got, text, (size_t)n), 0);
  }
  CHECK_EQUAL(pthread_join(writer, NULL), 0);
}

static void check_room(void) {
  char page[3 * kPage];
  int unread = 0;
  memset(page, 'p', sizeof page);
  CHECK_EQUAL(pipe2(fds, O_DIRECT | O_NONBLOCK), 0);
  CHECK_EQUAL(fcntl(fds[1], F_GETFL), O_WRONLY | O_DIRECT | O_NONBLOCK);
  for (int i = 0; i < kPages; ++i) CHECK_EQUAL(write(fds[1], "ab", 2), 2);
  CHECK_EQUAL(write(fds[1], "ab", 2), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(is_ready(fds[1], POLLOUT), 0);
  CHECK_EQUAL(ioctl(fds[0], FIONREAD, &unread), 0);
  CHECK_EQUAL(unread, 2 * kPages);
  CHECK_EQUAL(read(fds[0], page, 1), 1);
  CHECK_EQUAL(is_ready(fds[1], POLLOUT), POLLOUT);
  CHECK_EQUAL(ioctl(fds[0], FIONREAD, &unread), 0);
  CHECK_EQUAL(unread, 2 * (kPages - 1));
  CHECK_EQUAL(read(fds[0], page, sizeof page), 2);
  CHECK_EQUAL(write(fds[1], page, sizeof page), 2 * kPage);  // two pages are free
  for (int i = 0; i < kPages - 2; ++i) CHECK_EQUAL(read(fds[0], page, sizeof page), 2);
  for (int i = 0; i < 2; ++i) CHECK_EQUAL(read(fds[0], page, sizeof page), kPage);
  CHECK_EQUAL(read(fds[0], page, sizeof page), -1);
}

static void check_switching(void) {
  char got[16];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(fcntl(fds[1], F_SETFL, O_DIRECT), 0);
  CHECK_EQUAL(fcntl(fds[1], F_GETFL), O_WRONLY | O_DIRECT);
  CHECK_EQUAL(write(fds[1], "one", 3), 3);
  CHECK_EQUAL(write(fds[1], "two", 3), 3);
  CHECK_EQUAL(read(fds[0], got, sizeof got), 3);
  CHECK_EQUAL(read(fds[0], got, sizeof got), 3);
  const int on = 1;
  CHECK_EQUAL(ioctl(fds[1], FIONBIO, &on), 0);
  CHECK_EQUAL(fcntl(fds[1], F_GETFL), O_WRONLY | O_DIRECT | O_NONBLOCK);
  CHECK_EQUAL(fcntl(fds[1], F_SETFL, 0), 0);
  CHECK_EQUAL(write(fds[1], "one", 3), 3);
  CHECK_EQUAL(write(fds[1], "two", 3), 3);
  CHECK_EQUAL(read(fds[0], got, sizeof got), 6);
}

int main(void) {
  check_boundaries();
  check_room();
  check_switching();
  return succeed();
}
