// SPDX-License-Identifier: Apache-2.0
// The line discipline's output for random bytes with random modes, in both directions, is compared
// with the kernel's, from a native run of this program.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <termios.h>

#include "../small.h"

enum { kCases = 300, kBytes = 120, kMark = '~' };

static uint64_t state = 20261126;
static unsigned draw(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}
static tcflag_t some_of(const tcflag_t* bits, size_t n) {
  tcflag_t set = 0;
  for (size_t i = 0; i < n; ++i) set |= draw(2) != 0 ? bits[i] : 0;
  return set;
}
#define SOME_OF(...)                       \
  some_of((const tcflag_t[]){__VA_ARGS__}, \
          sizeof((const tcflag_t[]){__VA_ARGS__}) / sizeof(tcflag_t))

static void show(const char* what, const unsigned char* b, size_t n) {
  printf("%s", what);
  for (size_t i = 0; i < n; ++i) printf(" %02x", b[i]);
  printf("\n");
}

// A byte that often has a meaning; never the mark, nor the byte that ISTRIP makes of the mark.
static unsigned char byte(void) {
  static const unsigned char special[] = {3,    28,   127,  21,   4,    17,   19,  26,  18,
                                          23,   22,   '\n', '\r', '\t', '\b', ' ', 'a', '_',
                                          0xc3, 0xa9, 0xff, 0,    1,    'B',  '%', 5,   6};
  const unsigned char c = draw(3) != 0 ? special[draw(sizeof special)] : (unsigned char)draw(256);
  return (c & 0x7f) == kMark ? 'x' : c;
}

static void choose_modes(struct termios* t) {
  const int canonical = draw(4) != 0;
  t->c_iflag = SOME_OF(ISTRIP, IUCLC, IXON, IXANY, ICRNL, IGNCR, PARMRK, IUTF8);
  if (!canonical) t->c_iflag |= SOME_OF(INLCR, IXON);
  t->c_oflag = SOME_OF(OPOST, ONLCR, OCRNL, ONOCR, ONLRET, OLCUC, XTABS);
  t->c_lflag = SOME_OF(ECHO, ECHO, ECHOE, ECHOK, ECHONL, ECHOCTL, ECHOKE, IEXTEN, ECHOPRT);
  // At a flush, more or less of the kernel's output may be in transit.
  if (draw(2) != 0) t->c_lflag |= ISIG | NOFLSH;
  if (canonical) t->c_lflag |= ICANON;
  t->c_cc[VEOL] = draw(2) != 0 ? 5 : 0;
  t->c_cc[VEOL2] = draw(2) != 0 ? 6 : 0;
  t->c_cc[VMIN] = 1;
  t->c_cc[VTIME] = 0;
}

// Reads until the mark has come; by then the line discipline has processed everything.
static void read_to_mark(int line, const char* what) {
  unsigned char b[8192];
  ssize_t n;
  int marked = 0;
  do {
    n = read(line, b, sizeof b);
    CHECK(n >= 0);
    show(what, b, (size_t)n);
    marked = n > 0 && memchr(b, kMark, (size_t)n) != NULL;
  } while (!marked);
}

// The kernel has moved all bytes when it reports that there are none.
static void drain(int fd, const char* what) {
  unsigned char b[8192];
  size_t size = 0;
  ssize_t n;
  while ((n = read(fd, b + size, sizeof b - size)) > 0) size += (size_t)n;
  CHECK_EQUAL(errno, EAGAIN);
  show(what, b, size);
}

int main(void) {
  for (int i = 0; i < kCases; ++i) {
    int master, line;
    struct termios t;
    unsigned char b[kBytes + 8];
    CHECK_EQUAL(openpty(&master, &line, NULL, NULL, NULL), 0);
    CHECK_EQUAL(fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK), 0);
    CHECK_EQUAL(tcgetattr(line, &t), 0);
    choose_modes(&t);
    CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
    printf("case %d: %x %x %x\n", i, t.c_iflag, t.c_oflag, t.c_lflag);
    size_t size = 1 + draw(kBytes);
    for (size_t j = 0; j < size; ++j) b[j] = byte();
    show("sent", b, size);
    // Output continues whatever was sent; the first of the two may be taken literally.
    memcpy(b + size, "\x11\x11~\n", 4);
    CHECK_EQUAL(write(master, b, size + 4), (ssize_t)size + 4);
    read_to_mark(line, "read");
    drain(master, "echo");
    size = 1 + draw(kBytes);
    for (size_t j = 0; j < size; ++j) b[j] = byte();
    show("written", b, size);
    CHECK_EQUAL(write(line, b, size), (ssize_t)size);
    drain(master, "output");
    close(line);
    close(master);
  }
  return succeed();
}
