// SPDX-License-Identifier: Apache-2.0
// std::condition_variable::wait_for waits by pthread_cond_clockwait: a notification ends it, and
// its time-out does.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../check.h"

int main() {
  std::mutex mutex;
  std::condition_variable condition;
  bool ready = false;
  std::thread notifier([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::lock_guard lock(mutex);
    ready = true;
    condition.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    CHECK(condition.wait_for(lock, std::chrono::seconds(60), [&] { return ready; }));
  }
  notifier.join();
  std::unique_lock lock(mutex);
  CHECK(!condition.wait_for(lock, std::chrono::milliseconds(5), [] { return false; }));
  std::timed_mutex timed;
  timed.lock();
  std::thread trier([&] { CHECK(!timed.try_lock_for(std::chrono::milliseconds(5))); });
  trier.join();
  return succeed();
}
