// SPDX-License-Identifier: Apache-2.0
// For the programs about inotify: a separate directory, and events as text.
#ifndef TESTS_INTERPOSE_INOTIFY_H
#define TESTS_INTERPOSE_INOTIFY_H

#include "small.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

// The program works in this directory.
static inline void enter_directory(void) {
  char made[] = "/tmp/inotifyXXXXXX";
  CHECK(mkdtemp(made) != NULL);
  CHECK_EQUAL(chdir(made), 0);
}

static inline void leave_directory(void) {
  char here[256];
  CHECK(getcwd(here, sizeof here) != NULL);
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(rmdir(here), 0);
}

static inline const char* word_of(uint32_t bit) {
  static const char* const words[] = {
      "access", "modify", "attrib", "close_write", "close", "open",    "from", "to",
      "create", "delete", "gone",   "moved",       "?",     "unmount", "lost", "ignored"};
  for (int i = 0; i < 16; ++i) {
    if (bit == 1u << i) return words[i];
  }
  return "?";
}

// "watch event[/][ name][ +]": a slash marks a directory, a plus the same cookie as the previous
// event.
static inline void add_event(char* to, const struct inotify_event* e, uint32_t* cookie) {
  sprintf(to + strlen(to), "%s%d %s%s%s%s%s", *to == '\0' ? "" : ", ", e->wd,
          word_of(e->mask & ~(uint32_t)IN_ISDIR), (e->mask & IN_ISDIR) != 0 ? "/" : "",
          e->len != 0 ? " " : "", e->len != 0 ? e->name : "",
          e->cookie != 0 && e->cookie == *cookie ? " +" : "");
  *cookie = e->cookie;
}

// All events that wait at `fd`.
static inline const char* events_at(int fd) {
  static char text[8192];
  static char room[8192] __attribute__((aligned(8)));
  int waiting = 0;
  uint32_t cookie = 0;
  text[0] = '\0';
  while (ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0) {
    const ssize_t size = read(fd, room, sizeof room);
    CHECK(size > 0 && size <= waiting);
    for (ssize_t at = 0; at < size;) {
      const struct inotify_event* const e = (const struct inotify_event*)(room + at);
      CHECK(strlen(text) + e->len + 64 < sizeof text);
      add_event(text, e, &cookie);
      at += (ssize_t)sizeof *e + e->len;
    }
  }
  return text;
}

#define EXPECT(fd, wanted)                                                             \
  do {                                                                                 \
    const char* const expect_got = events_at(fd);                                      \
    if (strcmp(expect_got, (wanted)) != 0) {                                           \
      printf("%s:%d: [%s] instead of [%s]\n", __FILE__, __LINE__, expect_got, wanted); \
      fflush(stdout);                                                                  \
      _exit(1);                                                                        \
    }                                                                                  \
  } while (0)

static inline void make_file(const char* name) {
  const int f = open(name, O_CREAT | O_WRONLY | O_EXCL, 0600);
  CHECK(f >= 0 && close(f) == 0);
}

#endif
