// SPDX-License-Identifier: Apache-2.0
// In an orphaned group SIGTSTP stops no process. A group that becomes orphaned with a stopped
// member gets SIGHUP and SIGCONT.
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  pid_t child = fork();
  if (child == 0) {
    if (setsid() < 0) _exit(2);
    raise(SIGTSTP);
    raise(SIGTTIN);
    raise(SIGTTOU);
    _exit(5);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
  CHECK_EQUAL(WIFEXITED(status), 1);
  CHECK_EQUAL(WEXITSTATUS(status), 5);

  // A new session with a stopped job, whose shell ends.
  int end[2];
  CHECK_EQUAL(pipe(end), 0);
  child = fork();
  if (child == 0) {
    if (setsid() < 0) _exit(2);
    close(end[0]);
    const pid_t job = fork();
    if (job == 0) {
      if (setpgid(0, 0) != 0) _exit(2);
      raise(SIGTSTP);
      for (;;) pause();
    }
    int job_status;
    if (waitpid(job, &job_status, WUNTRACED) != job || !WIFSTOPPED(job_status)) _exit(3);
    _exit(6);
  }
  close(end[1]);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 6);
  char byte;
  CHECK_EQUAL(read(end[0], &byte, 1), 0);  // the job has ended: SIGHUP, after it continued
  return succeed();
}
