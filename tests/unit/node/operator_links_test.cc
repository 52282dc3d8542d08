// SPDX-License-Identifier: Apache-2.0
// GOAL    An operator's link carries one request and one answer; their number, size and time are
//         bounded.
// METHOD  OperatorLinks in an event loop; operators and a listener with real TLS on the loopback
//         interface, in this process.
// CHECKS  OPLINK-1; answers larger than the socket's buffers; requests in pieces, too long, or
//         missing.
#include "proxy/host/operator_links.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/control/frame.h"
#include "tests/unit/waiting.h"

using namespace crane;
using namespace crane::node;
using consensus::LinkContext;
using consensus::SecureLink;
using State = SecureLink::State;

namespace {

constexpr ReplicaId kSelf{2};
constexpr int kPatienceMs = 10'000;

consensus::GroupSecret secret() {
  consensus::GroupSecret bytes;
  bytes.fill(std::byte{9});
  return bytes;
}

struct World : OperatorLinks::Owner {
  event_base* base = event_base_new();
  std::unique_ptr<LinkContext> node = LinkContext::create(secret(), kSelf, 3).value();
  std::unique_ptr<LinkContext> outside =
      LinkContext::create(secret(), consensus::kOperator, 0).value();
  int listener = consensus::listen_on(consensus::resolve("127.0.0.1", 0).value()).value();
  std::unique_ptr<OperatorLinks> links = std::make_unique<OperatorLinks>(base, *this);
  std::vector<std::string> requests;
  std::string reply = "yes";

  virtual ~World() {
    links.reset();
    ::close(listener);
    event_base_free(base);
  }
  void woke() override {}
  std::string answer(const std::string& request) override {
    requests.push_back(request);
    return reply;
  }
  void turn() { event_base_loop(base, EVLOOP_NONBLOCK); }

  consensus::SocketAddress address() const {
    consensus::SocketAddress at;
    at.size = sizeof at.storage;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&at.storage), &at.size);
    return at;
  }
  // An operator whose link the fabric has handed out.
  std::unique_ptr<SecureLink> dial(std::string_view first = "") {
    const consensus::LinkName name{consensus::kOperator, kSelf, consensus::kOperatorPlane};
    auto mine = SecureLink::dial(*outside, name, address(), 1000).value();
    int fd = -1;
    REQUIRE(test::eventually(
        [&] {
          mine->progress();
          fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
          return fd >= 0;
        },
        kPatienceMs));
    auto theirs = SecureLink::accept(*node, fd, 1000).value();
    REQUIRE(test::eventually(
        [&] {
          // The request leaves together with the end of the handshake.
          if (mine->progress() == State::kOpen && !first.empty()) {
            send(*mine, first);
            first = "";
          }
          return theirs->progress() == State::kOpen && mine->state() == State::kOpen;
        },
        kPatienceMs));
    REQUIRE(theirs->name().from == consensus::kOperator);
    links->take(std::move(theirs));
    return mine;
  }
  static void send(SecureLink& link, std::string_view text) {
    control::put_frame(link.out(), text);
    link.flush();
  }
  // The answer; "" if the link ended without one.
  std::string heard(SecureLink& link) {
    std::string text;
    control::Framed got = control::Framed::kMore;
    REQUIRE(test::eventually(
        [&] {
          turn();
          link.flush();
          link.fill(64U << 10);
          got = control::read_frame(link.in(), control::kLinkAnswerMax, text);
          return got != control::Framed::kMore || link.state() == State::kFailed;
        },
        kPatienceMs));
    return text;
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a request over a link is answered, and the link closed", "[oplink]") {
  auto link = dial();
  send(*link, "status");
  CHECK(heard(*link) == "yes");
  CHECK(requests == std::vector<std::string>{"status"});
  CHECK(links->open() == 0);
}

TEST_CASE_METHOD(World, "a request that came with the handshake is not forgotten", "[oplink]") {
  auto link = dial("early");
  CHECK(heard(*link) == "yes");
  CHECK(requests == std::vector<std::string>{"early"});
}

TEST_CASE_METHOD(World, "a request may come in pieces", "[oplink]") {
  auto link = dial();
  std::vector<std::byte> bytes;
  control::put_frame(bytes, std::string(4096, 'x'));
  const std::span all(bytes);
  for (const auto piece : {all.first(1), all.subspan(1, 4), all.subspan(5)}) {
    REQUIRE(requests.empty());
    REQUIRE(links->open() == 1);
    link->out().insert(link->out().end(), piece.begin(), piece.end());
    link->flush();
    turn();
  }
  CHECK(heard(*link) == "yes");
  CHECK(requests == std::vector<std::string>{std::string(4096, 'x')});
}

TEST_CASE_METHOD(World, "a long answer arrives whole", "[oplink]") {
  reply = std::string(control::kLinkAnswerMax, 'a');
  auto link = dial("status");
  CHECK(heard(*link) == reply);
  CHECK(test::eventually([&] { return turn(), links->open() == 0; }, kPatienceMs));
}

TEST_CASE_METHOD(World, "an answer above the limit becomes a refusal", "[oplink]") {
  reply = std::string(control::kLinkAnswerMax + 1, 'a');
  auto link = dial("status");
  CHECK(heard(*link).find("too_large") != std::string::npos);
}

TEST_CASE_METHOD(World, "a request that is too long is refused and not carried out", "[oplink]") {
  auto link = dial(std::string(4097, 'x'));
  CHECK(heard(*link).find("too_large") != std::string::npos);
  CHECK(requests.empty());
}

TEST_CASE_METHOD(World, "an operator that leaves without a request leaves nothing", "[oplink]") {
  auto link = dial();
  link.reset();
  CHECK(test::eventually([&] { return turn(), links->open() == 0; }, kPatienceMs));
  CHECK(requests.empty());
}

TEST_CASE_METHOD(World, "silent operators do not keep others out", "[oplink][OPLINK-1]") {
  std::vector<std::unique_ptr<SecureLink>> silent;
  for (std::size_t i = 0; i < OperatorLinks::kLinksMax + 3; ++i) {
    silent.push_back(dial());
    CHECK(links->open() <= OperatorLinks::kLinksMax);
  }
  auto link = dial("status");
  CHECK(heard(*link) == "yes");
  CHECK(heard(*silent.front()).empty());  // the oldest was closed
  CHECK(silent.front()->state() == State::kFailed);
  silent.back()->fill(1);
  CHECK(silent.back()->state() == State::kOpen);
}
