// SPDX-License-Identifier: Apache-2.0
#pragma once
// For what changes a process for good, such as the processors that it may use.

#include <sys/wait.h>
#include <unistd.h>

// Whether `check` returns true in a child: this process stays as it is.
template <typename Check>
bool holds_in_child(Check check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}
