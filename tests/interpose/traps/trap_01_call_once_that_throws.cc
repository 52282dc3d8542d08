// SPDX-License-Identifier: Apache-2.0
// A routine of std::call_once that throws leaves the flag unset: the next caller runs it.
#include <mutex>
#include <stdexcept>
#include <thread>

#include "../check.h"

static std::once_flag flag;
static int runs, thrown;

static void make() {
  if (++runs < 3) throw std::runtime_error("not yet");
}

static void enter() {
  try {
    std::call_once(flag, make);
  } catch (const std::runtime_error&) {
    ++thrown;
  }
}

int main() {
  for (int i = 0; i < 4; ++i) std::thread(enter).join();
  CHECK_EQUAL(runs, 3);
  CHECK_EQUAL(thrown, 2);
  return succeed();
}
