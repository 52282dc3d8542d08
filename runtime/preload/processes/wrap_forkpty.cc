// SPDX-License-Identifier: Apache-2.0
// A child with a new pseudo-terminal as its terminal.
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/turn/turn.h"

namespace crane::wrap {

int forkpty(int* m, char* name, const struct termios* t, const struct winsize* z) {
  int master, line;
  if (wrap::openpty(&master, &line, name, t, z) < 0) return -1;
  const pid_t pid = scheduled_fork();
  if (pid == 0) {
    wrap::close(master);
    if (wrap::login_tty(line) < 0) wrap::_exit(1);
    return 0;
  }
  const int saved = errno;
  wrap::close(line);
  if (pid < 0) {
    wrap::close(master);
    return fail(saved);
  }
  *m = master;
  return pid;
}

}  // namespace crane::wrap
