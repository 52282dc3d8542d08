// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages from code that may not allocate, lock or use stdio.  Each message is one line and one
// write(2) to Crane's own descriptor, never to the server's stderr unless no other is set.
//
// Threads: any, also signal handlers.

#include <cstddef>
#include <cstdint>

namespace crane {

// The descriptor that messages go to; 2 until it is set.  Process-wide.
void set_message_fd(int fd) noexcept;
int message_fd() noexcept;

// Builds a line in a fixed buffer and cuts what does not fit.  The destructor writes it.
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
