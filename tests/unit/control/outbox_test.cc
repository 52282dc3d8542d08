// SPDX-License-Identifier: Apache-2.0
// GOAL    Sending to a process that does not read never blocks and loses nothing.
// METHOD  A socket pair; its other end is not read until the buffer is full, and then is.
// CHECKS  OUTBOX-1; the newest state; the order of requests; final messages before all others.
#include "runtime/control/outbox.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

using crane::control::Outbox;
using Kind = Outbox::Kind;
using Sent = Outbox::Sent;

namespace {

struct Ends {
  int ours = -1, theirs = -1;
  Ends() {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) == 0);
    ours = both[0];
    theirs = both[1];
  }
  ~Ends() {
    ::close(ours);
    if (theirs >= 0) ::close(theirs);
  }
  // Returns the available messages, and the descriptor that came with the last one.
  std::vector<std::string> read(int* passed = nullptr) const {
    std::vector<std::string> all;
    for (;;) {
      char text[4096];
      alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))];
      iovec part{text, sizeof text};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = ancillary;
      message.msg_controllen = sizeof ancillary;
      const ssize_t got = ::recvmsg(theirs, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      if (got <= 0) return all;
      all.emplace_back(text, static_cast<std::size_t>(got));
      if (const cmsghdr* const c = CMSG_FIRSTHDR(&message); c != nullptr && passed != nullptr) {
        std::memcpy(passed, CMSG_DATA(c), sizeof *passed);
      }
    }
  }
};

// Sends until the buffer is full.
int fill(Outbox& box) {
  int sent = 0;
  while (box.send(Kind::kUsual, "role", "role " + std::to_string(sent)) == Sent::kSent) ++sent;
  return sent;
}

}  // namespace

TEST_CASE("the newest value of a state arrives, however often it changed unread",
          "[outbox][OUTBOX-1]") {
  const Ends ends;
  Outbox box(ends.ours);
  const int direct = fill(box);
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(box.send(Kind::kUsual, "role", "newest " + std::to_string(i)) == Sent::kWaits);
  }
  CHECK(box.waiting() == 1);
  CHECK(ends.read().size() == static_cast<std::size_t>(direct));
  CHECK(box.flush() == Sent::kSent);
  CHECK(ends.read() == std::vector<std::string>{"newest 9999"});
  CHECK_FALSE(box.waits());
}

TEST_CASE("requests that do not fit arrive in order", "[outbox][OUTBOX-1]") {
  const Ends ends;
  Outbox box(ends.ours);
  std::vector<std::string> sent;
  for (int port = 0; box.waiting() < 100; ++port) {
    sent.push_back("listen " + std::to_string(port));
    REQUIRE(box.send(Kind::kUsual, sent.back(), sent.back()) != Sent::kFailed);
  }
  std::vector<std::string> received;
  while (received.size() < sent.size()) {
    const auto more = ends.read();
    REQUIRE_FALSE(more.empty());
    received.insert(received.end(), more.begin(), more.end());
    (void)box.flush();
  }
  CHECK(received == sent);
}

TEST_CASE("a final message is sent even if others wait", "[outbox][OUTBOX-1]") {
  const Ends ends;
  Outbox box(ends.ours);
  fill(box);
  for (int port = 0; port < 50; ++port) {
    (void)box.send(Kind::kUsual, "listen " + std::to_string(port), "listen");
  }
  REQUIRE(box.waiting() == 51);
  CHECK(box.send(Kind::kLast, "exit", "exit") == Sent::kSent);
  CHECK(ends.read().back() == "exit");
}

TEST_CASE("a descriptor waits with its message, and may be closed meanwhile",
          "[outbox][OUTBOX-1]") {
  const Ends ends;
  Outbox box(ends.ours);
  fill(box);
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  REQUIRE(box.send(Kind::kUsual, "listener", "listener", pipe[1]) == Sent::kWaits);
  ::close(pipe[1]);
  (void)ends.read();
  CHECK(box.flush() == Sent::kSent);
  int passed = -1;
  CHECK(ends.read(&passed).back() == "listener");
  REQUIRE(passed >= 0);
  CHECK(::write(passed, "x", 1) == 1);
  char byte = 0;
  CHECK((::read(pipe[0], &byte, 1) == 1 && byte == 'x'));
  ::close(passed);
  ::close(pipe[0]);
}

TEST_CASE("messages for a process that is gone are not sent to the next one", "[outbox]") {
  Ends first;
  const Ends second;
  Outbox box(first.ours);
  fill(box);
  ::close(std::exchange(first.theirs, -1));
  CHECK(box.flush() == Sent::kGone);
  box.start(second.ours);
  CHECK(box.send(Kind::kUsual, "role", "role") == Sent::kSent);
  CHECK(second.read() == std::vector<std::string>{"role"});
}
