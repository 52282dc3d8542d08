// SPDX-License-Identifier: Apache-2.0
// GOAL    the number of system calls per received frame is bounded: a leader receives thousands of
//         frames a second.
// METHOD  two fabrics in one process; this program's own recv, send and epoll_wait count calls.
// CHECKS  per frame that wakes a reader: one epoll_wait, one read, one answer.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "consensus/fabric/tcp.h"
#include "tests/fabric/tcp_group.h"
#include "tests/fabric/trio.h"

namespace {

std::atomic<int> reads, sends, looks;

}  // namespace

// These replace libc's calls in the whole program.
extern "C" ssize_t recv(int fd, void* to, size_t size, int flags) {
  ++reads;
  return ::syscall(SYS_recvfrom, fd, to, size, flags, nullptr, nullptr);
}

extern "C" ssize_t send(int fd, const void* from, size_t size, int flags) {
  ++sends;
  return ::syscall(SYS_sendto, fd, from, size, flags, nullptr, 0);
}

extern "C" int epoll_wait(int fd, epoll_event* events, int most, int timeout_ms) {
  ++looks;
  return static_cast<int>(::syscall(SYS_epoll_wait, fd, events, most, timeout_ms));
}

namespace crane::test {
namespace {

using consensus::TcpFabric;

std::unique_ptr<TcpFabric> opened(const consensus::TcpOptions& options) {
  auto out = TcpFabric::open(options);
  REQUIRE(out.ok());
  return std::move(out).value();
}

// Polls like its owner's loop, until nothing is left.
int poll_all(TcpFabric& f, Kind kind) {
  FabricEvent events[8];
  int seen = 0;
  while (const std::size_t n = f.poll(events)) {
    for (std::size_t i = 0; i < n; ++i) seen += events[i].kind == kind ? 1 : 0;
  }
  return seen;
}

bool readable(const TcpFabric& f) {
  pollfd fd{f.event_fd(), POLLIN, 0};
  return ::poll(&fd, 1, 0) == 1;
}

}  // namespace

TEST_CASE("tcp: a frame that wakes its reader costs one epoll_wait, one read and one answer",
          "[fabric]") {
  constexpr int kFrames = 200;
  TcpGroup group;
  const auto a = opened(group.options(0, 2));
  const auto b = opened(group.options(1, 2));
  REQUIRE(until([&] {
    poll_all(*a, Kind::kPeerUp);
    poll_all(*b, Kind::kPeerUp);
    return a->connected(kB) && b->connected(kA);
  }));
  const auto key = b->permit_writes(kA);
  REQUIRE(key.ok());
  const std::vector<std::byte> bytes(100, std::byte{7});
  int at_b[3] = {};  // epoll_wait calls, reads, sends
  int landed = 0;
  for (int i = 0; i < kFrames; ++i) {
    REQUIRE(until([&] { return poll_all(*b, Kind::kLanded), b->prepare_to_sleep(); }));
    a->write(kB, key.value(), 0, bytes, Token{1});
    a->ring_doorbell(kB);
    REQUIRE(until([&] { return readable(*b); }));
    const int before[3] = {looks, reads, sends};
    landed += poll_all(*b, Kind::kLanded);
    at_b[0] += looks - before[0];
    at_b[1] += reads - before[1];
    at_b[2] += sends - before[2];
    REQUIRE(until([&] { return poll_all(*a, Kind::kCompletion) > 0; }));
  }
  // Timers and pings wake it now and then, too.
  constexpr int kMost = kFrames + kFrames / 2;
  INFO("looks " << at_b[0] << ", reads " << at_b[1] << ", sends " << at_b[2]);
  CHECK(landed > kFrames / 2);
  CHECK(at_b[0] < kMost);
  CHECK(at_b[1] < kMost);
  CHECK(at_b[2] < kMost);
}

}  // namespace crane::test
