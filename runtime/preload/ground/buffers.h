// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vectors of buffers of read, readv, recvmsg and similar calls.
//
// Threads: plain values.

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "runtime/preload/ground/types.h"
#include "runtime/preload/ground/user_memory.h"

namespace crane {

inline constexpr int kVectorsMax = 1024;  // IOV_MAX of Linux

struct Buffers {
  const struct iovec* vectors;
  std::size_t count;
  std::size_t total;
};

// Returns 0, or a negative error number for vectors that Linux refuses.
inline int make_buffers(const struct iovec* vectors, std::size_t count, Buffers& out) noexcept {
  if (count > static_cast<std::size_t>(kVectorsMax)) return -EINVAL;
  if (!is_readable(vectors, count * sizeof *vectors)) return -EFAULT;
  out = {vectors, count, 0};
  for (std::size_t i = 0; i < count; ++i) {
    if (vectors[i].iov_len > static_cast<std::size_t>(SSIZE_MAX) - out.total) return -EINVAL;
    out.total += vectors[i].iov_len;
  }
  return 0;
}

// Whether the program may access the memory of the buffers.
inline bool are_there(const Buffers& b,
                      bool (*usable)(const void*, std::size_t) noexcept) noexcept {
  for (std::size_t i = 0; i < b.count; ++i) {
    if (!usable(b.vectors[i].iov_base, b.vectors[i].iov_len)) return false;
  }
  return true;
}

// A cursor over the bytes of the vectors.
class Cursor {
 public:
  explicit Cursor(const Buffers& buffers) noexcept : buffers_(buffers) {}

  // The contiguous bytes at the cursor, at most `limit`; empty at the end.
  struct Piece {
    std::byte* data;
    std::size_t size;
  };
  Piece piece(std::size_t limit) noexcept {
    while (at_ < buffers_.count && offset_ == buffers_.vectors[at_].iov_len) {
      ++at_;
      offset_ = 0;
    }
    if (at_ == buffers_.count) return {nullptr, 0};
    const struct iovec& v = buffers_.vectors[at_];
    const std::size_t left = v.iov_len - offset_;
    return {static_cast<std::byte*>(v.iov_base) + offset_, left < limit ? left : limit};
  }
  void advance(std::size_t n) noexcept { offset_ += n; }

  void skip(std::size_t n) noexcept {
    while (n > 0) {
      const std::size_t size = piece(n).size;
      if (size == 0) return;
      advance(size);
      n -= size;
    }
  }

  // Copies up to `size` bytes out of the vectors.
  std::size_t gather(std::byte* out, std::size_t size) noexcept {
    std::size_t done = 0;
    while (done < size) {
      const Piece p = piece(size - done);
      if (p.size == 0) break;
      std::memcpy(out + done, p.data, p.size);
      advance(p.size);
      done += p.size;
    }
    return done;
  }

  // Copies `size` bytes into the vectors, or as many as fit.
  void scatter(const void* bytes, std::size_t size) noexcept {
    const auto* from = static_cast<const std::byte*>(bytes);
    for (std::size_t done = 0; done < size;) {
      const Piece p = piece(size - done);
      if (p.size == 0) return;
      std::memcpy(p.data, from + done, p.size);
      advance(p.size);
      done += p.size;
    }
  }

  // Writes the vectors from the cursor on, cut to `limit` bytes, to `out` (room for kVectorsMax);
  // returns their number.
  std::size_t clip(std::size_t limit, struct iovec* out) const noexcept {
    std::size_t count = 0;
    std::size_t offset = offset_;
    for (std::size_t i = at_; i < buffers_.count && limit > 0; ++i, offset = 0) {
      const std::size_t left = buffers_.vectors[i].iov_len - offset;
      const std::size_t n = left < limit ? left : limit;
      out[count++] = {static_cast<char*>(buffers_.vectors[i].iov_base) + offset, n};
      limit -= n;
    }
    return count;
  }

 private:
  const Buffers& buffers_;
  std::size_t at_ = 0;
  std::size_t offset_ = 0;
};

}  // namespace crane
