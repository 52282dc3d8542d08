// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pages for data without a bound, because libcrane.so allocates nothing.
//
// Threads: any; does not touch errno.

#include <sys/mman.h>

#include <cstddef>

#include "dmt/base/raw.h"

namespace crane {

// Returns zeroed pages, or null. SYS_munmap frees them.
inline void* map_pages(std::size_t bytes) noexcept {
  const long at = raw_syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at < 0 ? nullptr : reinterpret_cast<void*>(at);
}

}  // namespace crane
