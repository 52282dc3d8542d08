// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file on tmpfs mapped into this process (Boost.Interprocess), created or opened.
//
// A file may be sparse; then ROOM-1 applies (sparse_file.h).
//
// Threads: one object, one thread.  Errors: Result; Boost's exceptions end here.

#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <span>
#include <string>

#include "consensus/fabric/sparse_file.h"
#include "dmt/base/result.h"

namespace crane::consensus::shm {

enum class Fill {
  kWhole,   // all pages are allocated at creation
  kSparse,  // pages are allocated by back() (ROOM-1)
};

class Region {
 public:
  Region() = default;
  // Makes a new file of zeros. kExists: the file exists; kFull: there is no room.
  static Result<Region> create(const std::string& path, std::size_t bytes, Fill fill,
                               std::size_t align = 0) noexcept;
  // Maps the whole existing file, at a multiple of `align` (whole pages; 0: anywhere).
  // REQUIRES (else kDamaged): it has at least `bytes_min` bytes.
  enum class Access { kRead, kReadWrite };
  static Result<Region> open(const std::string& path, Access access, std::size_t bytes_min,
                             std::size_t align = 0) noexcept;

  // ROOM-1
  bool back(std::size_t offset, std::size_t bytes) noexcept { return file_.back(offset, bytes); }
  // Makes the pages of a range present and writable now, in one call, so that later writes do not
  // fault one by one; best effort.
  void populate(std::size_t offset, std::size_t bytes) const noexcept;
  // Copies a range of the file; holes read as zeros and stay holes. False: the range is outside the
  // file, or cannot be read.
  bool read(std::size_t offset, std::span<std::byte> out) const noexcept;
  // Makes the whole file one hole again: all zeros.
  void clear() noexcept;

  bool mapped() const noexcept { return region_.get_address() != nullptr; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(region_.get_address()); }
  std::size_t size() const noexcept { return region_.get_size(); }
  template <typename T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data());
  }

 private:
  boost::interprocess::mapped_region region_;
  SparseFile file_;
};

}  // namespace crane::consensus::shm
