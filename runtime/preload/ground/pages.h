// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of our own for what has no bound: libcrane.so allocates nothing.
//
// Threads: any; nothing here touches errno.

#include <sys/mman.h>

#include <cstddef>

#include "dmt/base/raw.h"

namespace crane {

// All zeros; null when there is none.  SYS_munmap gives it back.
inline void* map_pages(std::size_t bytes) noexcept {
  const long at = raw_syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at < 0 ? nullptr : reinterpret_cast<void*>(at);
}

}  // namespace crane
