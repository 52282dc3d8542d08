// SPDX-License-Identifier: Apache-2.0
// For the programs about pseudo-terminals: the master's side of a conversation.
#ifndef TESTS_INTERPOSE_TERMINAL_H
#define TESTS_INTERPOSE_TERMINAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "small.h"

// Output of the terminal that no expect() has consumed yet.
static char output[16384];
static size_t output_size = 0;

// Reads at the master until `text` has come, and discards everything up to its end.
static inline void expect(int master, const char* text) {
  char* found;
  output[output_size] = '\0';
  while ((found = strstr(output, text)) == NULL) {
    const ssize_t n = read(master, output + output_size, sizeof output - 1 - output_size);
    if (n <= 0) {
      fprintf(stderr, "expected \"%s\", heard \"%s\" (%s)\n", text, output, strerror(errno));
      CHECK(0);
    }
    for (ssize_t i = 0; i < n; ++i) {
      if (output[output_size] == '\0') output[output_size] = '?';
      ++output_size;
    }
    output[output_size] = '\0';
  }
  const size_t end = (size_t)(found - output) + strlen(text);
  memmove(output, output + end, output_size - end + 1);
  output_size -= end;
}

static inline void type(int master, const char* text) {
  CHECK_EQUAL(write(master, text, strlen(text)), (ssize_t)strlen(text));
}

static inline void type_text(int line, const char* text) { type(line, text); }

static inline void make_raw(int line) {
  struct termios t;
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  cfmakeraw(&t);
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
}

static inline void open_pair(int* master, int* line) {
  CHECK_EQUAL(openpty(master, line, NULL, NULL, NULL), 0);
}

static inline short events_of(int fd) {
  struct pollfd p = {fd, POLLIN | POLLOUT | POLLPRI, 0};
  CHECK(poll(&p, 1, 0) >= 0);
  return p.revents;
}

// Waits until poll reports `wanted`.
static inline void await_events(int fd, short wanted) {
  struct pollfd p = {fd, wanted, 0};
  CHECK_EQUAL(poll(&p, 1, -1), 1);
}

static inline int status_of_child(pid_t child) {
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  return status;
}

#endif
