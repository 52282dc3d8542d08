// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens files by name for open, creat, fopen, opendir and the functions that make temporary files.
//
// Threads: REQUIRES the turn.  Results: a descriptor or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"

namespace crane {

int open_at(Turn& turn, int directory, const char* path, int flags, mode_t mode) noexcept;
// openat2: `how` is the program's structure of `size` bytes. The kernel resolves the name.
int open_how(Turn& turn, int directory, const char* path, const void* how,
             std::size_t size) noexcept;

// Fills the six X before the last `suffix` characters with virtual randomness until `attempt(path)`
// returns something else than -EEXIST.
template <typename Attempt>
int with_fresh_name(char* path, int suffix, Attempt attempt) noexcept;
bool has_name_pattern(const char* path, int suffix, char*& pattern) noexcept;
void fill_name(char* pattern) noexcept;

template <typename Attempt>
int with_fresh_name(char* path, int suffix, Attempt attempt) noexcept {
  char* pattern = nullptr;
  if (!has_name_pattern(path, suffix, pattern)) return -EINVAL;
  constexpr int kAttempts = 1000;
  for (int i = 0; i < kAttempts; ++i) {
    fill_name(pattern);
    const int result = attempt();
    if (result != -EEXIST) return result;
  }
  return -EEXIST;
}

}  // namespace crane
