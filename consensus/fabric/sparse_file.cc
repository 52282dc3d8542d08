// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/sparse_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace crane::consensus::shm {

bool SparseFile::back(std::size_t offset, std::size_t bytes) noexcept {
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  if (bytes == 0) return true;
  for (std::size_t i = offset / kStep; i <= (offset + bytes - 1) / kStep; ++i) {
    if (backed_[i]) continue;
    const std::size_t from = i * kStep;
    const std::size_t n = std::min(kStep, bytes_ - from);
    int done = 0;
    do {
      done = ::fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from), static_cast<off_t>(n));
    } while (done != 0 && errno == EINTR);
    if (done != 0 && errno != EOPNOTSUPP) return false;
    backed_[i] = true;
  }
  return true;
}

}  // namespace crane::consensus::shm
