// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/messages.h"

#include <unistd.h>

namespace crane::launcher {
namespace {
bool verbose = false;
}

void say(const std::string& text) {
  // One write, so that lines of several programs on one terminal stay whole.
  const std::string line = "crane-run: " + text + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

void set_verbose(bool on) { verbose = on; }

void detail(const std::string& text) {
  if (verbose) say(text);
}

}  // namespace crane::launcher
