// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages from code that may not allocate, lock or use stdio: one line, one write(2),
// to a descriptor of Crane's own, never to the server's stderr unless nothing else is set.
//
// Threads: any, also signal handlers.

#include <cstddef>
#include <cstdint>

namespace crane {

// The descriptor messages go to; 2 until it is set.  Process-wide.
void set_message_fd(int fd) noexcept;
int message_fd() noexcept;

// A line under construction in a fixed buffer; what does not fit is cut.  Written on destruction.
class Message {
 public:
  Message() noexcept;
  ~Message();
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  Message& operator<<(const char* text) noexcept;
  Message& operator<<(std::int64_t number) noexcept;
  Message& operator<<(std::uint64_t number) noexcept;
  Message& operator<<(int number) noexcept { return *this << static_cast<std::int64_t>(number); }
  Message& operator<<(unsigned number) noexcept {
    return *this << static_cast<std::uint64_t>(number);
  }
  Message& hex(std::uint64_t number) noexcept;

 private:
  static constexpr std::size_t kMax = 480;
  void put(char c) noexcept;
  char text_[kMax + 1];
  std::size_t size_ = 0;
};

}  // namespace crane
