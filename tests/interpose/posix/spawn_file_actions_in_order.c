// SPDX-License-Identifier: Apache-2.0
// The file actions of posix_spawn run in order: open, dup2, close, close all from a number; a dup2
// onto itself keeps a descriptor open over the exec.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>

#include "../child.h"

extern char** environ;

static int is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static int look(void) {
  char text[8] = {0};
  CHECK_EQUAL(read(20, text, 5), 5);
  CHECK_EQUAL(strcmp(text, "hello"), 0);
  CHECK_EQUAL(is_open(21), 0);
  CHECK_EQUAL(is_open(22), 1);
  CHECK_EQUAL(is_open(23), 0);
  for (int fd = 24; fd < 64; ++fd) CHECK_EQUAL(is_open(fd), 0);
  CHECK_EQUAL(write(22, "done", 4), 4);
  return 7;
}

int main(int argc, char** argv) {
  if (argc > 1) return look();
  (void)argv;
  int in[2], out[2];
  CHECK_EQUAL(pipe2(in, O_CLOEXEC), 0);
  CHECK_EQUAL(pipe2(out, O_CLOEXEC), 0);
  CHECK_EQUAL(dup3(out[1], 22, O_CLOEXEC), 22);
  CHECK_EQUAL(dup2(out[1], 40), 40);
  posix_spawn_file_actions_t a;
  CHECK_EQUAL(posix_spawn_file_actions_init(&a), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addopen(&a, 21, "/dev/null", O_RDWR, 0), 0);
  CHECK_EQUAL(posix_spawn_file_actions_adddup2(&a, 21, 23), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addclose(&a, 21), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addclose(&a, 21), 0);
  CHECK_EQUAL(posix_spawn_file_actions_adddup2(&a, in[0], 20), 0);
  CHECK_EQUAL(posix_spawn_file_actions_adddup2(&a, 22, 22), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addclosefrom_np(&a, 23), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addclose(&a, -1), EBADF);
  char own[] = "again", argument[] = "x", text[8] = {0};
  char* const arguments[] = {own, argument, NULL};
  pid_t child = -1;
  CHECK_EQUAL(posix_spawn(&child, "/proc/self/exe", &a, NULL, arguments, environ), 0);
  CHECK_EQUAL(write(in[1], "hello", 5), 5);
  CHECK_EQUAL(read(out[0], text, 4), 4);
  CHECK_EQUAL(strcmp(text, "done"), 0);
  CHECK_EQUAL(status_of(child), 7 << 8);
  CHECK_EQUAL(posix_spawn_file_actions_destroy(&a), 0);
  return succeed();
}
