// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/proc_text.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "dmt/base/raw.h"

namespace crane {

void ProcText::begin(const char* name, bool close_on_exec) noexcept {
  size_ = 0;
  written_ = 0;
  file_ = raw_syscall(SYS_memfd_create, name, close_on_exec ? unsigned{MFD_CLOEXEC} : 0U);
}

ProcText& ProcText::operator<<(const char* text) noexcept {
  put(text, std::strlen(text));
  return *this;
}

ProcText& ProcText::operator<<(std::uint64_t value) noexcept {
  char digits[20];
  std::size_t count = 0;
  do {
    digits[sizeof digits - ++count] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  put(digits + sizeof digits - count, count);
  return *this;
}

void ProcText::put(const char* text, std::size_t size) noexcept {
  while (size > 0) {
    if (size_ == kBytes) flush();
    const std::size_t n = size < kBytes - size_ ? size : kBytes - size_;
    std::memcpy(text_ + size_, text, n);
    size_ += n;
    text += n;
    size -= n;
  }
}

void ProcText::flush() noexcept {
  if (file_ >= 0 && size_ > 0) {
    const long put = raw_syscall(SYS_pwrite64, file_, text_, size_, written_);
    if (put != static_cast<long>(size_)) {
      raw_syscall(SYS_close, file_);
      file_ = put < 0 ? put : -ENOMEM;
    }
    written_ += size_;
  }
  size_ = 0;
}

long ProcText::finish() noexcept {
  flush();
  return file_;
}

bool ProcLines::open(const char* path) noexcept {
  file_ = raw_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  return file_ >= 0;
}

void ProcLines::close() noexcept {
  if (file_ >= 0) raw_syscall(SYS_close, file_);
  file_ = -1;
}

bool ProcLines::fill() noexcept {
  std::memmove(text_, text_ + at_, end_ - at_);
  end_ -= at_;
  at_ = 0;
  const long got = raw_syscall(SYS_read, file_, text_ + end_, kLineMax - end_);
  if (got > 0) end_ += static_cast<std::size_t>(got);
  return got > 0;
}

char* ProcLines::next() noexcept {
  for (;;) {
    char* const line = text_ + at_;
    if (auto* end = static_cast<char*>(std::memchr(line, '\n', end_ - at_)); end != nullptr) {
      *end = '\0';
      at_ = static_cast<std::size_t>(end - text_) + 1;
      return line;
    }
    if ((at_ > 0 || end_ < kLineMax) && fill()) continue;
    if (at_ == end_) return nullptr;
    // The last line, or a line that is too long; the rest of a long line becomes another line.
    char* const rest = text_ + at_;
    text_[end_] = '\0';
    at_ = end_;
    return rest;
  }
}

}  // namespace crane
