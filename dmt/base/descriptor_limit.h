// SPDX-License-Identifier: Apache-2.0
#pragma once
// The limit of this process' descriptors (RLIMIT_NOFILE).
//
// Threads: of the whole process.

#include <sys/resource.h>

#include <algorithm>

namespace crane {

// Returns zeros if the kernel does not report the limit.
inline rlimit descriptor_limit() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit : rlimit{};
}

// Sets the soft limit, capped at the hard one; RLIM_INFINITY raises it to the hard limit.
inline void limit_descriptors(rlim_t soft) noexcept {
  rlimit limit = descriptor_limit();
  if (limit.rlim_max == 0) return;
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace crane
