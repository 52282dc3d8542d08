// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file descriptor that closes itself, helpers for whole files, locks of directories, and the
// errors of system calls on files.
//
// Threads: one object, one thread; the functions are plain.

#include <unistd.h>

#include <string>
#include <utility>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// Returns the error of errno: "cannot STEP OBJECT: REASON". kFull when a file system has no room,
// with the remedy; kNotFound, kExists and kDenied by errno; else kSystem.  `step` is static text.
Error file_error(const char* step, const std::string& object);

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

// flock(2) of the directory `path`, LOCK_EX or LOCK_SH, without waiting.  A process that works in a
// directory holds a lock on it.  The kernel drops the lock with the process, so a dead owner is
// recognised even if another process has its number. kBusy: another process works there.
// kNotFound: the directory no longer has that name.
Result<Descriptor> lock_directory(const std::string& path, int operation);

}  // namespace crane::checkpoint
