// SPDX-License-Identifier: Apache-2.0
// For criu_test.cc: a parent in a new process group, which waits to be killed, and a child that
// sleeps; with an argument, the child sleeps only after its parent's end. Prints "child" and its
// pid.
#include <stdio.h>
#include <unistd.h>

int main(int count, char** words) {
  (void)words;
  int alive[2];
  char byte;
  if (setpgid(0, 0) != 0 || pipe(alive) != 0) return 99;
  if (fork() != 0) return (int)read(alive[0], &byte, 1);
  close(alive[1]);
  printf("child %d\n", (int)getpid());
  fflush(stdout);
  if (count > 1 && read(alive[0], &byte, 1) != 0) return 99;
  for (;;) sleep(1000);
}
