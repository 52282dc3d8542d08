// SPDX-License-Identifier: Apache-2.0
// GOAL    crane-ctl knows why a node on another host did not answer.
// METHOD  Nodes' ends of links in threads of this process; ports without a process; one request to
//         all of them.
// CHECKS  Each kind of Reply over links; a node that ends after it got the request.
#include "runtime/launcher/ctl/operator_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "runtime/control/frame.h"

using namespace crane;
using namespace crane::launcher;
using consensus::LinkContext;
using consensus::SecureLink;
using consensus::SocketAddress;
using State = SecureLink::State;

namespace {

consensus::GroupSecret secret(std::uint8_t fill) {
  consensus::GroupSecret bytes;
  bytes.fill(std::byte{fill});
  return bytes;
}

// A node that does one thing with one link.
class FakeNode {
 public:
  enum class Does { kAnswers, kEnds, kNothing };
  FakeNode(std::uint8_t number, std::uint8_t fill, Does what)
      : context_(LinkContext::create(secret(fill), ReplicaId{number}, 9).value()), what_(what) {
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeNode() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  SocketAddress address() const {
    SocketAddress at;
    at.size = sizeof at.storage;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at.storage), &at.size);
    return at;
  }

 private:
  void serve() {
    pollfd wait{listener_, POLLIN, 0};
    ::poll(&wait, 1, -1);
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    auto link = SecureLink::accept(*context_, fd, 1000).value();
    std::string request;
    while (link->state() != State::kFailed) {
      pollfd ready{fd, POLLIN, 0};
      ::poll(&ready, 1, -1);
      if (what_ == Does::kNothing) {
        char bytes[4096];
        if (::recv(fd, bytes, sizeof bytes, 0) == 0) return;  // the operator has given up
        continue;
      }
      if (link->progress() != State::kOpen) continue;
      link->fill(4096);
      if (control::read_frame(link->in(), 4096, request) == control::Framed::kWhole) break;
    }
    if (link->state() == State::kFailed || what_ == Does::kEnds) return;
    control::put_frame(link->out(), "heard " + request);
    link->flush();
  }

  std::unique_ptr<LinkContext> context_;
  Does what_;
  int listener_ = consensus::listen_on(consensus::resolve("127.0.0.1", 0).value()).value();
  std::thread thread_;
};

}  // namespace

TEST_CASE("each reason for a missing answer is known", "[oplink]") {
  using Does = FakeNode::Does;
  FakeNode well(0, 1, Does::kAnswers), stranger(1, 2, Does::kAnswers), other(7, 1, Does::kAnswers),
      ends(3, 1, Does::kEnds), silent(4, 1, Does::kNothing);
  const int free = consensus::listen_on(consensus::resolve("127.0.0.1", 0).value()).value();
  SocketAddress nobody;
  nobody.size = sizeof nobody.storage;
  ::getsockname(free, reinterpret_cast<sockaddr*>(&nobody.storage), &nobody.size);
  ::close(free);
  auto replies = ask_over_links(secret(1),
                                {{0, well.address()},
                                 {1, stranger.address()},
                                 {2, other.address()},
                                 {3, ends.address()},
                                 {4, silent.address()},
                                 {5, nobody},
                                 {6, std::nullopt}},
                                "hello");
  CHECK(replies[0].reply == Reply::kAnswer);
  CHECK(replies[0].text == "heard hello");
  CHECK(replies[1].reply == Reply::kOtherSecret);
  CHECK(replies[2].reply == Reply::kOtherReplica);
  CHECK(replies[3].reply == Reply::kLost);
  CHECK(replies[4].reply == Reply::kSilent);
  CHECK(replies[5].reply == Reply::kAbsent);
  CHECK(replies[6].reply == Reply::kUnreachable);
}
