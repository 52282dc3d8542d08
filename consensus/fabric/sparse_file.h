// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file of shared memory whose pages are taken from the machine step by step, before they are
// touched.
//
// A process that touches a page of a mapped sparse file while its tmpfs is full is killed (SIGBUS),
// also by reading.  So:
//
//   INVARIANT ROOM-1  No node touches a page of a sparse file before back() said that it is there.
//                 A writer backs what it is about to write; another process' file is read by
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
  // Owns `fd`, which is open for writing, from here on.
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

  // Allocates the pages of a range, whole steps; what this object has backed costs a look at a bit.
  // False: the file system has no room now, or the range is outside.  A file system that cannot
  // allocate ahead is taken for one that always has room.
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
