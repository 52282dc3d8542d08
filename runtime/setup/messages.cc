// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/messages.h"

#include <unistd.h>

namespace crane::setup {
namespace {
bool verbose = false;
const char* program = "crane-run";
}  // namespace

void say(const std::string& text) {
  // One write, so that lines of several programs on one terminal stay whole.
  const std::string line = std::string(program) + ": " + text + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

void set_program(const char* name) { program = name; }

void set_verbose(bool on) { verbose = on; }

void detail(const std::string& text) {
  if (verbose) say(text);
}

}  // namespace crane::setup
