// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests that change the process permanently, e.g. the processors that it may use.

#include <sys/wait.h>
#include <unistd.h>

// Returns whether `check` returns true in a child; this process does not change.
template <typename Check>
bool holds_in_child(Check check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}
