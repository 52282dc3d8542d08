// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/end_signals.h"

namespace crane::launcher {

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  struct sigaction hang_up {};
  const bool known = sigaction(SIGHUP, nullptr, &hang_up) == 0;
  if (!known || hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

const char* why_it_ends(int signo) {
  switch (signo) {
    case SIGINT:
      return "interrupted";
    case SIGHUP:
      return "the terminal was closed";
    default:
      return "stop requested";
  }
}

}  // namespace crane::launcher
