// SPDX-License-Identifier: Apache-2.0
// Functions for the small programs with child processes.
#ifndef TESTS_INTERPOSE_CHILD_H
#define TESTS_INTERPOSE_CHILD_H

#include "small.h"

#include <sys/types.h>
#include <sys/wait.h>

// A child that calls _exit with the routine's result.
static inline pid_t start_process(int (*routine)(int), int argument) {
  const pid_t p = fork();
  CHECK(p >= 0);
  if (p == 0) _exit(routine(argument));
  return p;
}

// A child's status from waitpid, once it has ended.
static inline int status_of(pid_t p) {
  int status = -1;
  CHECK_EQUAL(waitpid(p, &status, 0), p);
  return status;
}

#endif
