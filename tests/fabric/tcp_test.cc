// SPDX-License-Identifier: Apache-2.0
// GOAL    guarantees of the tcp fabric alone: no process without the group's secret joins, reads or
//         writes; broken frames close a link and nothing else; links of different processes are not
//         mixed; an acknowledgement follows the copy; a silent peer does not block operations.
// METHOD  real fabrics, polled one by one without the wrapper of tcp_group.h; strangers are plain
//         sockets, and members that break the rules are bare links with hand-made frames.
// REPLAY  random bytes come from a printed seed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "consensus/fabric/tcp.h"
#include "dmt/base/log.h"
#include "tests/fabric/tcp_group.h"
#include "tests/fabric/trio.h"

namespace crane::test {
namespace {

using consensus::SecureLink;
using consensus::TcpFabric;
using consensus::tcp::Decoded;
using consensus::tcp::Frame;
using consensus::tcp::FrameHead;
using consensus::tcp::FrameKind;
using consensus::tcp::Plane;

std::unique_ptr<TcpFabric> opened(const consensus::TcpOptions& options) {
  auto out = TcpFabric::open(options);
  REQUIRE(out.ok());
  return std::move(out).value();
}

// Calls poll() once and adds its events to `seen`.
void poll_once(TcpFabric& f, std::vector<Seen>& seen) {
  FabricEvent events[8];
  const std::size_t n = f.poll(events);
  for (std::size_t i = 0; i < n; ++i) {
    const FabricEvent& e = events[i];
    seen.push_back({e.kind, e.peer, e.ok, e.token, {e.data.begin(), e.data.end()}});
  }
}

std::size_t count(const std::vector<Seen>& seen, Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(seen.begin(), seen.end(), [&](const Seen& s) { return s.kind == kind; }));
}

// Two connected members, polled by the test.
struct Pair {
  TcpGroup group;
  std::unique_ptr<TcpFabric> a;
  std::unique_ptr<TcpFabric> b;
  std::vector<Seen> seen_a;
  std::vector<Seen> seen_b;

  explicit Pair(std::uint64_t silence_ns = 3'000'000'000) {
    auto at_a = group.options(0, 2);
    auto at_b = group.options(1, 2);
    at_a.silence_ns = at_b.silence_ns = silence_ns;
    a = opened(at_a);
    b = opened(at_b);
    REQUIRE(until([&] { return poll(), a->connected(kB) && b->connected(kA); }));
  }
  void poll() {
    poll_once(*a, seen_a);
    poll_once(*b, seen_b);
  }
};

// A plain connection to a replica's port.
class ForeignPeer {
 public:
  explicit ForeignPeer(const consensus::Endpoint& to)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(to.port);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    ::fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  ~ForeignPeer() { ::close(fd_); }
  ForeignPeer(const ForeignPeer&) = delete;
  ForeignPeer& operator=(const ForeignPeer&) = delete;
  void send(std::span<const std::byte> bytes) {
    static_cast<void>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  // Whether the other side closed.
  bool closed() {
    char bytes[4096];
    ssize_t got = 0;
    while ((got = ::recv(fd_, bytes, sizeof bytes, 0)) > 0) {
    }
    return got == 0 || errno != EAGAIN;
  }

 private:
  int fd_;
};

// Captures messages while it exists.
class Messages {
 public:
  Messages() {
    REQUIRE(::pipe2(fds_, O_CLOEXEC | O_NONBLOCK) == 0);
    set_message_fd(fds_[1]);
  }
  ~Messages() {
    set_message_fd(before_);
    ::close(fds_[0]);
    ::close(fds_[1]);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  const std::string& text() {
    char bytes[4096];
    ssize_t got = 0;
    while ((got = ::read(fds_[0], bytes, sizeof bytes)) > 0) {
      text_.append(bytes, static_cast<std::size_t>(got));
    }
    return text_;
  }

 private:
  int before_ = message_fd();
  int fds_[2];
  std::string text_;
};

// A member's link, on which the test sends any frames.
class BareLink {
 public:
  BareLink(TcpGroup& group, TcpFabric& there, Plane plane, std::uint64_t session,
           std::uint64_t incarnation, std::vector<Seen>& seen, ReplicaId to = kB) {
    auto context = consensus::LinkContext::create(test_secret(), kA, 3);
    REQUIRE(context.ok());
    context_ = std::move(context).value();
    const auto& at = group.endpoints()[1];
    auto dialled = SecureLink::dial(*context_, {kA, to, static_cast<std::uint8_t>(plane)},
                                    consensus::resolve(at.address, at.port).value(), 5000);
    REQUIRE(dialled.ok());
    link_ = std::move(dialled).value();
    REQUIRE(until([&] {
      poll_once(there, seen);
      const auto state = link_->progress();
      return state == SecureLink::State::kOpen || state == SecureLink::State::kFailed;
    }));
    const consensus::tcp::Hello hello{consensus::tcp::kHelloMagic,
                                      consensus::tcp::kTcpVersion,
                                      3,
                                      77,
                                      TcpGroup::kLogBytes,
                                      incarnation,
                                      session};
    send({0, FrameKind::kHello, 0, 0, 0}, std::as_bytes(std::span(&hello, 1)));
  }
  void send(const FrameHead& head, std::span<const std::byte> body) {
    consensus::tcp::encode(link_->out(), head, body);
    link_->flush();
  }
  void send_raw(std::span<const std::byte> bytes) {
    link_->out().insert(link_->out().end(), bytes.begin(), bytes.end());
    link_->flush();
  }
  SecureLink& link() noexcept { return *link_; }
  bool closed() {
    link_->fill(1U << 20);
    return link_->state() == SecureLink::State::kFailed;
  }

 private:
  std::unique_ptr<consensus::LinkContext> context_;
  std::unique_ptr<SecureLink> link_;
};

}  // namespace

TEST_CASE("tcp: a replica with another secret is refused, and both sides report why", "[fabric]") {
  TcpGroup group;
  Messages messages;
  auto wrong = group.options(0, 2);
  wrong.secret = test_secret(0x11);
  const auto a = opened(wrong);
  const auto b = opened(group.options(1, 2));
  std::vector<Seen> seen;
  CHECK(until([&] {
    poll_once(*a, seen);
    poll_once(*b, seen);
    const std::string& text = messages.text();
    const std::size_t first = text.find("does not hold this group's secret");
    return first != std::string::npos &&
           text.find("does not hold this group's secret", first + 1) != std::string::npos;
  }));
  INFO(messages.text());
  const auto port = std::to_string(group.endpoints()[1].port);
  CHECK(messages.text().find("r1 at 127.0.0.1:" + port) != std::string::npos);
  CHECK_FALSE(a->connected(kB));
  CHECK_FALSE(b->connected(kA));
  CHECK(seen.empty());
}

TEST_CASE("tcp: strangers get nothing and disturb no member", "[fabric]") {
  Messages quiet;
  TcpGroup group;
  auto options = group.options(1, 2);
  options.silence_ns = 500'000'000;
  const auto b = opened(options);
  std::vector<Seen> seen;
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 50; ++i) {
    ForeignPeer s(group.endpoints()[1]);
    std::vector<std::byte> bytes(1 + random() % 3000);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    if (i % 3 == 0) bytes = bytes_of("GET / HTTP/1.0\r\n\r\n");
    if (i % 3 == 1) bytes[0] = std::byte{0x16};  // like the start of a TLS handshake
    s.send(bytes);
    CHECK(until([&] { return poll_once(*b, seen), s.closed(); }));
  }
  std::vector<std::unique_ptr<ForeignPeer>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<ForeignPeer>(group.endpoints()[1]));
    poll_once(*b, seen);
  }
  CHECK(seen.empty());
  const auto a = opened(group.options(0, 2));  // a member still finds room
  CHECK(until([&] {
    poll_once(*a, seen);
    poll_once(*b, seen);
    return a->connected(kB) && b->connected(kA);
  }));
  CHECK(until([&] {
    poll_once(*a, seen);
    poll_once(*b, seen);
    return std::all_of(silent.begin(), silent.end(), [](auto& s) { return s->closed(); });
  }));
  CHECK(a->connected(kB));
}

TEST_CASE("tcp: a recorded first flight opens nothing", "[fabric]") {
  Messages quiet;
  TcpGroup group;
  const auto& at = group.endpoints()[1];
  std::vector<std::byte> recorded(4096);
  std::vector<Seen> seen;
  {
    auto listener = consensus::listen_on(consensus::resolve(at.address, at.port).value());
    REQUIRE(listener.ok());
    const auto a = opened(group.options(0, 2));
    int fd = -1;
    ssize_t got = 0;
    CHECK(until([&] {
      poll_once(*a, seen);
      if (fd < 0) fd = ::accept(listener.value(), nullptr, nullptr);
      if (fd >= 0) got = ::recv(fd, recorded.data(), recorded.size(), MSG_DONTWAIT);
      return got > 0;
    }));
    recorded.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    ::close(fd);
    ::close(listener.value());
  }
  auto options = group.options(1, 2);
  options.silence_ns = 300'000'000;
  const auto b = opened(options);
  ForeignPeer s(at);
  s.send(recorded);
  CHECK(until([&] { return poll_once(*b, seen), s.closed(); }));
  CHECK(seen.empty());
}

TEST_CASE("tcp: a link is valid only for the replica and the direction in its name", "[fabric]") {
  Messages quiet;
  TcpGroup group;
  auto options = group.options(1, 3);
  options.silence_ns = 60'000'000'000;  // the silence must not close any link
  const auto b = opened(options);
  std::vector<Seen> seen;
  BareLink elsewhere(group, *b, Plane::kBackground, 1, 1, seen, kC);
  CHECK(elsewhere.link().state() == SecureLink::State::kFailed);
  BareLink itself(group, *b, Plane::kBackground, 1, 1, seen, kA);
  CHECK(until([&] { return poll_once(*b, seen), itself.closed(); }));
  CHECK(seen.empty());
}

TEST_CASE("tcp: a member's broken frames close its links and nothing else", "[fabric]") {
  Messages quiet;
  TcpGroup group;
  auto options = group.options(1, 3);
  options.silence_ns = 60'000'000'000;  // the silence must not close any link
  const auto b = opened(options);
  std::vector<Seen> seen;
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (std::uint64_t round = 1; round <= 30; ++round) {
    seen.clear();
    BareLink back(group, *b, Plane::kBackground, round, round, seen);
    BareLink log(group, *b, Plane::kLog, round, round, seen);
    REQUIRE(until([&] { return poll_once(*b, seen), b->connected(kA); }));
    BareLink& link = round % 2 == 0 ? back : log;
    FrameHead head{0, round % 2 == 0 ? FrameKind::kRequest : FrameKind::kWrite, 0, 0, 1};
    if (round % 3 == 0) head.body = 0xfffffff0;                   // oversized
    if (round % 3 == 1) head.kind = static_cast<FrameKind>(200);  // unknown
    if (round % 3 == 2) head.kind = FrameKind::kHello;            // out of place, truncated
    std::vector<std::byte> bytes(sizeof head + random() % 200);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    std::memcpy(bytes.data(), &head, sizeof head);
    link.send_raw(bytes);
    CHECK(until([&] { return poll_once(*b, seen), link.closed(); }));
    CHECK(count(seen, Kind::kRequest) == 0);
  }
  const auto c = opened(group.options(2, 3));
  CHECK(until([&] {
    poll_once(*b, seen);
    poll_once(*c, seen);
    return c->connected(kB) && b->connected(kC);
  }));
}

TEST_CASE("tcp: links of two processes of one replica are never mixed", "[fabric]") {
  TcpGroup group;
  const auto b = opened(group.options(1, 3));
  std::vector<Seen> seen;
  BareLink back(group, *b, Plane::kBackground, 5, 50, seen);
  BareLink log(group, *b, Plane::kLog, 5, 50, seen);
  REQUIRE(until([&] { return poll_once(*b, seen), b->connected(kA); }));
  const auto key = b->permit_writes(kA);
  REQUIRE(key.ok());
  BareLink newer_log(group, *b, Plane::kLog, 5, 51, seen);  // same session, another process
  CHECK(until([&] { return poll_once(*b, seen), count(seen, Kind::kPeerDown) == 1; }));
  back.send({0, FrameKind::kRequest, 0, 0, 0}, bytes_of("of the dead"));
  CHECK(until([&] { return poll_once(*b, seen), back.closed() && log.closed(); }));
  BareLink newer_back(group, *b, Plane::kBackground, 5, 51, seen);
  CHECK(until([&] { return poll_once(*b, seen), b->connected(kA); }));
  newer_back.send({0, FrameKind::kRequest, 0, 0, 0}, bytes_of("of the living"));
  CHECK(until([&] { return poll_once(*b, seen), count(seen, Kind::kRequest) > 0; }));
  const auto got = std::find_if(seen.begin(), seen.end(),
                                [](const Seen& s) { return s.kind == Kind::kRequest; });
  CHECK(text_of(got->data) == "of the living");
  CHECK(count(seen, Kind::kRequest) == 1);
}

TEST_CASE("tcp: an acknowledgement follows the copy, which checks the key", "[fabric]") {
  Pair t;
  for (int i = 0; i < 200; ++i) {
    const auto key = t.b->permit_writes(kA);
    REQUIRE(key.ok());
    const auto bytes = std::vector<std::byte>(1 + static_cast<std::size_t>(i) * 100,
                                              static_cast<std::byte>(i + 1));
    t.seen_a.clear();
    t.a->write(kB, key.value(), 0, bytes, Token{1});
    if (i % 4 == 3) {
      t.a->ring_doorbell(kB);  // the write is on its way
      t.b->revoke_writes(kA);
    }
    while (count(t.seen_a, Kind::kCompletion) == 0) {
      poll_once(*t.b, t.seen_b);
      poll_once(*t.a, t.seen_a);
    }
    t.b->revoke_writes(kA);
    const bool there = std::equal(bytes.begin(), bytes.end(), t.b->log_memory().begin());
    const auto done = std::find_if(t.seen_a.begin(), t.seen_a.end(),
                                   [](const Seen& s) { return s.kind == Kind::kCompletion; });
    CHECK(done->ok == (i % 4 != 3));
    CHECK(there == done->ok);  // before the owner polls again
    t.b->log_memory()[0] = std::byte{0};
  }
}

TEST_CASE("tcp: operations on a silent peer fail, and it is reported as down", "[fabric]") {
  Pair t(300'000'000);
  const auto key = t.b->permit_writes(kA);
  REQUIRE(key.ok());
  t.a->write(kB, key.value(), 0, bytes_of("nobody takes this"), Token{1});
  t.a->read_cell(kB, 0, Token{2});
  t.a->read(kB, 0, 100, Token{3});
  CHECK(until([&] { return poll_once(*t.a, t.seen_a), count(t.seen_a, Kind::kPeerDown) > 0; }));
  CHECK(until([&] { return poll_once(*t.a, t.seen_a), count(t.seen_a, Kind::kCompletion) == 3; }));
  for (const Seen& s : t.seen_a) {
    if (s.kind == Kind::kCompletion) CHECK_FALSE(s.ok);
  }
  CHECK(until([&] { return t.poll(), t.a->connected(kB) && t.b->connected(kA); }));
  t.a->write(kB, key.value(), 0, bytes_of("sticky"), Token{4});  // FABRIC-F5
  CHECK(until([&] { return t.poll(), count(t.seen_a, Kind::kCompletion) == 4; }));
  CHECK_FALSE(t.seen_a.back().ok);
}

TEST_CASE("tcp: the backlog of one peer is bounded", "[fabric]") {
  Pair t;
  const auto key = t.b->permit_writes(kA);
  REQUIRE(key.ok());
  const auto big = std::vector<std::byte>(1U << 20);
  for (std::uint64_t i = 0; i < 64; ++i) t.a->write(kB, key.value(), 0, big, Token{i});
  std::uint64_t next = 0;
  for (int polls = 0; polls < 20; ++polls) poll_once(*t.a, t.seen_a);  // the peer does not poll
  for (const Seen& s : t.seen_a) {
    if (s.kind != Kind::kCompletion) continue;
    CHECK_FALSE(s.ok);
    CHECK(s.token == Token{next++});
  }
  CHECK(next == 64);
  CHECK(t.a->connected(kB));
}

TEST_CASE("tcp: a heartbeat does not wait for log bytes", "[fabric]") {
  Pair t;
  const auto key = t.b->permit_writes(kA);
  REQUIRE(key.ok());
  const auto big = std::vector<std::byte>(1U << 20, std::byte{1});
  for (std::uint64_t i = 0; i < 12; ++i) t.a->write(kB, key.value(), 0, big, Token{i});
  t.a->ring_doorbell(kB);
  t.a->set_cell(1, {{99}});
  t.b->read_cell(kA, 1, Token{77});
  CHECK(until([&] { return t.poll(), count(t.seen_b, Kind::kCompletion) == 1; }));
  CHECK(t.a->test_only_outstanding() > 0);  // log bytes are still under way
  CHECK(until([&] { return t.poll(), t.a->test_only_outstanding() == 0; }));
}

TEST_CASE("tcp: frames are distinguished from all other bytes", "[fabric]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<std::byte> frame;
  consensus::tcp::encode(frame, {0, FrameKind::kRequest, 0, 0, 7}, bytes_of("hello"));
  Frame out;
  for (std::size_t n = 0; n < frame.size(); ++n) {
    CHECK(decode(std::span(frame).first(n), Plane::kBackground, 100, out) == Decoded::kMore);
  }
  REQUIRE(decode(frame, Plane::kBackground, 100, out) == Decoded::kFrame);
  CHECK(out.head.sequence == 7);
  CHECK(text_of(out.body) == "hello");
  CHECK(out.bytes == frame.size());
  CHECK(decode(frame, Plane::kLog, 100, out) == Decoded::kBad);
  std::vector<std::byte> write;
  consensus::tcp::encode(write, {0, FrameKind::kWrite, 0, 0, 1}, std::vector<std::byte>(16 + 101));
  CHECK(decode(write, Plane::kLog, 101, out) == Decoded::kFrame);
  CHECK(decode(write, Plane::kLog, 100, out) == Decoded::kBad);
  for (int i = 0; i < 100000; ++i) {
    std::vector<std::byte> bytes(random() % 64);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 16);
    const Plane plane = random() % 2 == 0 ? Plane::kLog : Plane::kBackground;
    if (decode(bytes, plane, 32, out) == Decoded::kFrame) {
      REQUIRE(out.bytes <= bytes.size());
      REQUIRE(out.body.size() + sizeof(FrameHead) == out.bytes);
    }
  }
}

}  // namespace crane::test
