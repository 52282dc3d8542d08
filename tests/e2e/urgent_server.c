// SPDX-License-Identifier: Apache-2.0
// A server that reports to each client what it sees of urgent data.
//
//   urgent_server PORT
//
// A connection whose first line is "hold" is not read until another one sends "go". "ring" gets an
// urgent byte back. "look" returns how many bytes held connections have before a mark. All other
// input is answered: "urgent X" for an urgent byte, "signal" before it if SIGURG came, "mark" where
// a read began at the mark, "read TEXT" for the bytes read.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kMost = 64 };
static struct pollfd watched[kMost];
static int held[kMost];
static volatile sig_atomic_t rung;

static void ring(int signo) { rung = signo; }

static void send_line(int fd, const char* word, const char* text) {
  char line[600];
  const int n = snprintf(line, sizeof line, "%s%s\n", word, text);
  if (send(fd, line, (size_t)n, MSG_NOSIGNAL) != n) perror("send");
}

static void get_urgent(int i) {
  const int fd = watched[i].fd;
  char text[2] = {0};
  if (rung) send_line(fd, "signal", "");
  rung = 0;
  if (recv(fd, text, 1, MSG_OOB) == 1) send_line(fd, "urgent ", text);
}

static int unread_of_held(void) {
  int all = 0;
  for (int i = 1; i < kMost; ++i) {
    int n = 0;
    if (held[i] && ioctl(watched[i].fd, FIONREAD, &n) == 0) all += n;
  }
  return all;
}

static void leave(int i) {
  close(watched[i].fd);
  watched[i].fd = -1;
}

static void read_client(int i) {
  const int fd = watched[i].fd;
  char text[512];
  const int at_mark = sockatmark(fd);
  const ssize_t n = read(fd, text, sizeof text - 1);
  if (n <= 0) return leave(i);
  text[n] = '\0';
  if (at_mark) send_line(fd, "mark", "");
  if (strcmp(text, "hold") == 0) {
    held[i] = 1;
    send_line(fd, "held", "");
  } else if (strcmp(text, "go") == 0) {
    memset(held, 0, sizeof held);
    send_line(fd, "gone", "");
  } else if (strcmp(text, "look") == 0) {
    snprintf(text, sizeof text, "%d", unread_of_held());
    send_line(fd, "there ", text);
  } else if (strcmp(text, "ring") == 0) {
    if (send(fd, "ding!", 5, MSG_OOB) != 5) perror("send urgent");
  } else {
    send_line(fd, "read ", text);
  }
}

static void take(int listener) {
  const int fd = accept(listener, NULL, NULL);
  int i = 1;
  while (i < kMost && watched[i].fd >= 0) ++i;
  if (fd < 0 || i == kMost) abort();
  fcntl(fd, F_SETOWN, getpid());
  watched[i].fd = fd;
  held[i] = 0;
}

int main(int argc, char** argv) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
  a.sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "0"));
  signal(SIGURG, ring);
  for (int i = 0; i < kMost; ++i) watched[i].fd = -1;
  watched[0] = (struct pollfd){socket(AF_INET, SOCK_STREAM, 0), POLLIN, 0};
  if (bind(watched[0].fd, (struct sockaddr*)&a, sizeof a) != 0) return 1;
  if (listen(watched[0].fd, 16) != 0) return 1;
  for (;;) {
    for (int i = 1; i < kMost; ++i) watched[i].events = held[i] ? 0 : POLLIN | POLLPRI;
    if (poll(watched, kMost, -1) < 0) continue;
    if (watched[0].revents != 0) take(watched[0].fd);
    for (int i = 1; i < kMost; ++i) {
      if (watched[i].fd < 0) continue;
      if ((watched[i].revents & POLLPRI) != 0) {
        get_urgent(i);
      } else if ((watched[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        read_client(i);
      }
    }
  }
}
