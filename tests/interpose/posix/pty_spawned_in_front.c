// SPDX-License-Identifier: Apache-2.0
// posix_spawn puts a child's new group into the foreground of the terminal before it runs.
#include "../terminal.h"

#include <spawn.h>

extern char** environ;

static void shell(void) {
  pid_t child;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  char* const words[] = {"sh", "-c", "read word; echo got $word", NULL};
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  CHECK_EQUAL(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP), 0);
  CHECK_EQUAL(posix_spawn_file_actions_addtcsetpgrp_np(&actions, 0), 0);
  CHECK_EQUAL(posix_spawn(&child, "/bin/sh", &actions, &attributes, words, environ), 0);
  CHECK_EQUAL(status_of_child(child), 0);
  signal(SIGTTOU, SIG_IGN);
  CHECK_EQUAL(tcgetpgrp(0), child);
  CHECK_EQUAL(tcsetpgrp(0, getpgrp()), 0);
  _exit(0);
}

int main(void) {
  int master;
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) shell();
  type(master, "this\n");
  expect(master, "got this\r\n");
  CHECK_EQUAL(status_of_child(pid), 0);
  return succeed();
}
