// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sends messages to the process at the other end of a SOCK_SEQPACKET socket.  That process may be
// stopped, but sending never waits for it: a message without room is kept, and sent when there is
// room.
//
// The number of kept messages is bounded: for each key only the newest is kept.  Messages wait
// while more than a quarter of the socket's room is used (the kernel reports it as writable until
// then), so that the last message of a process, which cannot wait, still finds room.
//
// Threads: one.
// Ownership: the caller owns the socket; descriptors that wait with their message are copies.
// INVARIANT OUTBOX-1  No message is lost before the other end is gone, except one that a newer
//                     message with the same key replaces.

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
    kLast,  // this end may be gone before the other one reads: sent before the waiting messages
  };
  // kGone: there is no reader any more.  kFailed, with errno: the message cannot be sent at all.
  enum class Sent : std::uint8_t { kSent, kWaits, kGone, kFailed };

  Outbox() = default;
  explicit Outbox(int fd) noexcept : fd_(fd) {}
  ~Outbox() { start(-1); }
  Outbox(Outbox&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        refused_(other.refused_),
        waiting_(std::exchange(other.waiting_, {})) {}
  Outbox& operator=(Outbox&&) = delete;

  // From now on sends to this socket, and discards the messages that wait for the previous one.
  // -1: no socket.
  void start(int fd) noexcept;

  // Replaces a waiting message with the same `key`.  `passed`: a descriptor to send with the
  // message; -1: none.
  Sent send(Kind kind, const std::string& key, std::string text, int passed = -1);

  std::size_t waiting() const noexcept { return waiting_.size(); }
  bool waits() const noexcept { return waiting() > 0; }
  // Whether the socket was writable but took nothing, so that polling for writability is useless.
  bool refused() const noexcept { return refused_; }
  // Sends as many messages as there is room for.  kWaits: call it again when the socket is writable
  // or, if it has refused(), after kAgainMs.
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
