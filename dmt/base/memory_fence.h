// SPDX-License-Identifier: Apache-2.0
#pragma once
// The full memory fence of Dekker-style hand-shakes.  If the loads after the fence miss another
// thread's store, then that thread sees the store before the fence.  It has its own header because
// gcc's thread sanitizer does not model fences; a read-modify-write gives the same order there.
//
// Threads / Processes: any.

#include <atomic>

namespace crane {

inline void memory_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  static constinit std::atomic<unsigned> word{0};
  word.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace crane
