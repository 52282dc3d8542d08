// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/log.h"

#include <atomic>

#include "dmt/base/raw.h"

namespace crane {
namespace {
std::atomic<int> message_descriptor{2};
}  // namespace

void set_message_fd(int fd) noexcept { message_descriptor.store(fd, std::memory_order_relaxed); }
int message_fd() noexcept { return message_descriptor.load(std::memory_order_relaxed); }

Message::Message() noexcept { *this << "crane: "; }

Message::~Message() {
  text_[size_++] = '\n';
  // Inside a server, write() is one of the interposed functions.
  (void)raw_syscall(SYS_write, message_fd(), text_, size_);
}

void Message::put(char c) noexcept {
  if (size_ < kMax) text_[size_++] = c;
}

Message& Message::operator<<(const char* text) noexcept {
  for (; text != nullptr && *text != '\0'; ++text) put(*text);
  return *this;
}

Message& Message::operator<<(std::uint64_t number) noexcept {
  char digits[20];
  std::size_t n = 0;
  do {
    digits[n++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (n > 0) put(digits[--n]);
  return *this;
}

Message& Message::operator<<(std::int64_t number) noexcept {
  if (number >= 0) return *this << static_cast<std::uint64_t>(number);
  put('-');
  return *this << (~static_cast<std::uint64_t>(number) + 1);
}

Message& Message::hex(std::uint64_t number) noexcept {
  static constexpr char kDigits[] = "0123456789abcdef";
  put('0');
  put('x');
  for (int shift = 60; shift >= 0; shift -= 4) put(kDigits[(number >> shift) & 15]);
  return *this;
}

}  // namespace crane
