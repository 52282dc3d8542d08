// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/threads/robust_mutexes.h"

#include <linux/futex.h>

#include "dmt/base/raw.h"
#include "dmt/scheduler.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

bool is_shared_mutex(const pthread_mutex_t* m) noexcept { return (m->__data.__kind & 128) != 0; }

// Called by visitors that hold the turn.
CRANE_TURN_UNCHECKED void wake_waiters_of(const std::uint32_t* word) noexcept {
  const auto* mutex = reinterpret_cast<const pthread_mutex_t*>(word);
  dmt::signal(*segment, object_of(mutex, is_shared_mutex(mutex)), dmt::kAll);
}

// Visits the words of a thread's robust mutexes; returns the head of its list, or null.
template <typename Visit>
struct robust_list_head* each_robust_mutex(std::uint32_t thread_id, Visit visit) noexcept {
  struct robust_list_head* head = nullptr;
  std::size_t size = 0;
  if (raw_syscall(SYS_get_robust_list, thread_id, &head, &size) < 0) return nullptr;
  if (head == nullptr) return nullptr;
  constexpr int kLinksMax = 2048;  // the kernel's bound against cyclic lists
  struct robust_list* link = head->list.next;
  for (int i = 0; i < kLinksMax && link != nullptr; ++i) {
    // Bit 0 of a link marks priority-inheriting mutexes.
    auto* at = reinterpret_cast<struct robust_list*>(reinterpret_cast<std::uintptr_t>(link) & ~1ul);
    if (at == &head->list) break;
    auto* word = reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(at) + head->futex_offset);
    struct robust_list* next = at->next;  // before another thread may use the mutex
    visit(word);
    link = next;
  }
  return head;
}

}  // namespace

void release_robust_mutexes(std::uint32_t thread_id) noexcept {
  struct robust_list_head* const head = each_robust_mutex(thread_id, [=](std::uint32_t* word) {
    std::uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((seen & FUTEX_TID_MASK) == thread_id) {
      const std::uint32_t dead = (seen & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
      if (__atomic_compare_exchange_n(word, &seen, dead, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
        wake_waiters_of(word);
        break;
      }
    }
  });
  // Leaves the kernel nothing to do when the thread ends.
  if (head != nullptr) head->list.next = &head->list;
}

void release_robust_mutexes_of_process() noexcept { each_living_thread(release_robust_mutexes); }

void wake_waiters_of_robust_mutexes() noexcept {
  each_living_thread([](std::uint32_t thread_id) {
    each_robust_mutex(thread_id, [](const std::uint32_t* word) { wake_waiters_of(word); });
  });
}

}  // namespace crane
