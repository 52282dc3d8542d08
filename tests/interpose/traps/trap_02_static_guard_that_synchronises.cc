// SPDX-License-Identifier: Apache-2.0
// The constructor of a local static variable locks and sleeps; three threads arrive at once.
#include <chrono>
#include <mutex>
#include <thread>

#include "../check.h"

static std::mutex mutex;
static int made;

struct Slow {
  Slow() {
    const std::lock_guard lock(mutex);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    value = ++made;
  }
  int value = 0;
};

static void enter() {
  static Slow slow;
  CHECK_EQUAL(slow.value, 1);
}

int main() {
  std::thread a(enter), b(enter), c(enter);
  a.join();
  b.join();
  c.join();
  CHECK_EQUAL(made, 1);
  return succeed();
}
