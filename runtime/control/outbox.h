// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a process says to the one at the other end of a SOCK_SEQPACKET socket, which may be stopped:
// sending never waits for that one.  A message that finds no room is kept, and goes when there is
// some.
//
// What is kept is bounded: of the messages with one key the newest.  Messages wait while more than
// a quarter of the socket's room is used (the kernel calls it writable until then), so that the
// last words of a process, which cannot wait, still fit in.
//
// Threads: one.
// Ownership: the socket is the caller's; descriptors that wait with their message are copies.
// INVARIANT OUTBOX-1  No message is lost before the other end is gone, but one that a newer one of
//                     its kind replaces.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace crane::control {

class Outbox {
 public:
  enum class Kind : std::uint8_t {
    kUsual,
    kLast,  // this end may be gone before the other one reads: it goes before what waits
  };
  // kGone: nothing reads it any more.  kFailed, with errno: it cannot be sent at all.
  enum class Sent : std::uint8_t { kSent, kWaits, kGone, kFailed };

  Outbox() = default;
  explicit Outbox(int fd) noexcept : fd_(fd) {}
  ~Outbox() { start(-1); }
  Outbox(Outbox&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        refused_(other.refused_),
        waiting_(std::exchange(other.waiting_, {})) {}
  Outbox& operator=(Outbox&&) = delete;

  // From here on it goes to this socket; what waited was for the one before.  -1: there is none.
  void start(int fd) noexcept;

  // `key`: a message that waits with the same one is replaced.  `passed`: a descriptor that goes
  // with it; -1: none.
  Sent send(Kind kind, const std::string& key, std::string text, int passed = -1);

  std::size_t waiting() const noexcept { return waiting_.size(); }
  bool waits() const noexcept { return waiting() > 0; }
  // The socket was writable, and took nothing all the same: that it is writable says nothing.
  bool refused() const noexcept { return refused_; }
  // Sends what there is room for.  kWaits: call it again when the socket is writable or, where it
  // has refused(), after kAgainMs.
  Sent flush();
  static constexpr int kAgainMs = 100;

 private:
  struct Message {
    Kind kind;
    std::string key, text;
    int passed;
  };
  bool has_room() const noexcept;
  Sent put(const std::string& text, int passed) noexcept;
  Sent keep(Kind kind, const std::string& key, std::string text, int passed);

  int fd_ = -1;
  bool refused_ = false;
  std::deque<Message> waiting_;
};

}  // namespace crane::control
