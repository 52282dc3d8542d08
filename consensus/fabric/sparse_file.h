// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shared-memory file whose pages are allocated step by step, before they are touched.
//
// If a process touches a hole of a mapped sparse file while the tmpfs is full, the kernel kills it
// (SIGBUS), even on a read.  So:
//
//   INVARIANT ROOM-1  No node touches a page of a sparse file before back() has allocated it.  A
//                 writer backs what it is about to write.  A node reads another process's file with
//                 pread(2), which allocates nothing.
//
// Threads: one object, one thread.  Any number of processes may back the same pages.

#include <unistd.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace crane::consensus::shm {

class SparseFile {
 public:
  static constexpr std::size_t kStep = 256U << 10;

  SparseFile() = default;
  // Takes ownership of `fd`, which must be open for writing.
  SparseFile(int fd, std::size_t bytes) : fd_(fd), bytes_(bytes) { forget(); }
  SparseFile(SparseFile&& other) noexcept { *this = std::move(other); }
  SparseFile& operator=(SparseFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(bytes_, other.bytes_);
    std::swap(backed_, other.backed_);
    return *this;
  }
  ~SparseFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  // Allocates the pages of a range, in whole steps; a step that this object has backed costs one
  // bit test.  False: the file system has no room now, or the range is outside the file.  A file
  // system that cannot allocate ahead counts as one that always has room.
  bool back(std::size_t offset, std::size_t bytes) noexcept;
  // The file was made sparse again.
  void forget() { backed_.assign((bytes_ + kStep - 1) / kStep, false); }
  int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
  std::size_t bytes_ = 0;
  std::vector<bool> backed_;  // by steps
};

}  // namespace crane::consensus::shm
