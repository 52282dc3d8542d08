// SPDX-License-Identifier: Apache-2.0
// The primitives under the C++ library: clockwait (trap 9), raw futexes for atomic wait,
// semaphores, latches and barriers, guards of static variables that synchronise (trap 2),
// call_once, futures.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) {                                      \
      std::printf("%d: failed: %s\n", __LINE__, #condition); \
      std::fflush(stdout);                                   \
      std::_Exit(1);                                         \
    }                                                        \
  } while (0)

namespace {

std::mutex mutex;
std::condition_variable changed;

struct Slow {
  Slow() {
    std::lock_guard lock(mutex);
    ++made;
    std::this_thread::sleep_for(5ms);
  }
  static inline int made = 0;
};
Slow& slow() {
  static Slow object;
  return object;
}

template <typename F>
void in_threads(int n, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(f, i);
  for (std::thread& t : threads) t.join();
}

}  // namespace

int main() {
  in_threads(4, [](int) { slow(); });
  CHECK(Slow::made == 1);
  std::printf("static\n");

  {
    bool flag = false;
    std::thread t([&] {
      std::this_thread::sleep_for(20ms);
      std::lock_guard lock(mutex);
      flag = true;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    CHECK(changed.wait_for(lock, 60s, [&] { return flag; }));
    CHECK(!changed.wait_for(lock, 1ms, [] { return false; }));
    lock.unlock();
    t.join();
  }
  std::printf("wait_for\n");

  std::atomic<int> turn{0};
  in_threads(2, [&](int me) {
    for (int i = 0; i < 100; ++i) {
      int seen;
      while ((seen = turn.load()) % 2 != me) turn.wait(seen);
      turn.store(seen + 1);
      turn.notify_all();
    }
  });
  CHECK(turn == 200);
  std::printf("atomic wait\n");

  std::counting_semaphore<8> semaphore(0);
  std::latch latch(3);
  std::barrier barrier(3);
  std::atomic<int> passed{0};
  in_threads(3, [&](int i) {
    latch.arrive_and_wait();
    for (int r = 0; r < 10; ++r) barrier.arrive_and_wait();
    if (i == 0) semaphore.release(2);
    if (i != 0) semaphore.acquire();
    ++passed;
  });
  CHECK(passed == 3);
  std::printf("latch barrier semaphore\n");

  std::timed_mutex timed;
  std::shared_mutex shared;
  timed.lock();
  std::thread([&] { CHECK(!timed.try_lock_for(2ms)); }).join();
  timed.unlock();
  in_threads(3, [&](int) {
    std::shared_lock lock(shared);
    std::this_thread::yield();
  });
  std::once_flag once;
  int runs = 0;
  in_threads(4, [&](int) { std::call_once(once, [&] { ++runs; }); });
  CHECK(runs == 1);
  auto future = std::async(std::launch::async, [] { return 7; });
  CHECK(future.get() == 7);
  std::printf("the rest\nEXIT-SUCCESS\n");
  return 0;
}
