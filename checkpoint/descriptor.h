// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file descriptor that closes itself, and helpers for whole files.
//
// Threads: one object, one thread.

#include <unistd.h>

#include <string>
#include <utility>

#include "checkpoint/file_error.h"

namespace crane::checkpoint {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Writes all of `size` bytes; false with errno.
bool write_all(int fd, const void* data, std::size_t size) noexcept;
// Reads up to `size` bytes, fewer only at the end of the file; -1 with errno.
ssize_t read_all(int fd, void* data, std::size_t size) noexcept;

// Makes a directory's entries survive a loss of power.
Outcome sync_directory(const std::string& path);
// Writes PATH.tmp, syncs and renames it to PATH; the directory itself is not synced.
// `fault`: a fault point between the two.
Outcome write_file(const std::string& path, const std::string& text, const char* fault = nullptr);
// Reads a whole file of at most `limit` bytes; kDamaged if it is larger.
Result<std::string> read_file(const std::string& path, std::size_t limit);

}  // namespace crane::checkpoint
