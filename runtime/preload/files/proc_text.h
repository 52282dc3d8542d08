// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of a file that replaces one of the kernel's (proc_files.h), in a memory file that is
// written as the text grows.
//
// Threads: the own thread only. These functions do not touch errno.

#include <cstddef>
#include <cstdint>

namespace crane {

class ProcText {
 public:
  // Creates an empty file, or stores the kernel's error for finish().
  void begin(const char* name, bool close_on_exec) noexcept;

  ProcText& operator<<(const char* text) noexcept;
  ProcText& operator<<(std::uint64_t value) noexcept;
  void put(const char* text, std::size_t size) noexcept;

  // Returns a descriptor at the beginning of the file, or the -errno of the first failure.
  long finish() noexcept;

 private:
  void flush() noexcept;

  static constexpr std::size_t kBytes = 4096;
  char text_[kBytes];
  std::size_t size_ = 0;
  std::uint64_t written_ = 0;
  long file_ = -1;  // or the -errno of the first failure
};

// The lines of a kernel file without their newlines; a line has at most kLineMax bytes.
class ProcLines {
 public:
  // Returns false when the kernel has no such file or forbids access: error() returns the reason.
  bool open(const char* path) noexcept;
  // Returns the next line, which ends with a zero and may be changed; null at the end.
  char* next() noexcept;
  void close() noexcept;
  long error() const noexcept { return file_; }

 private:
  bool fill() noexcept;

  static constexpr std::size_t kLineMax = 3 * 4096;
  char text_[kLineMax + 1];
  std::size_t at_ = 0, end_ = 0;
  long file_ = -1;
};

}  // namespace crane
