// SPDX-License-Identifier: Apache-2.0
#pragma once
// The full memory fence of Dekker-style hand-shakes: a store before it is seen by all whose
// own store the loads behind it have missed.  In its own header because gcc's thread sanitizer does
// not know fences and gets the same order from a read-modify-write.
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
