// SPDX-License-Identifier: Apache-2.0
// GOAL    Under any leader a peer of the server receives each of the server's bytes once.
// METHOD  A real peer at a loopback port; one or two replicas' proxies, which take the same records
//         and a log that commits everything.  Shared sockets survive a change of the leader.
// CHECKS  CONN-5, CLIENT-1, KEEPER-1 for connections that the server opens; refusals.
#include "proxy/clients/outbound.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "proxy/clients/host_sockets.h"
#include "proxy/clients/proxy.h"
#include "tests/unit/clients/fake_host.h"
#include "tests/unit/clients/fake_log.h"
#include "tests/unit/clients/loopback_listener.h"

using namespace crane;
using namespace crane::proxy;

namespace {

constexpr std::uint64_t kConn = kOutboundBit | 1000;

struct Peer {
  ~Peer() {
    for (const int fd : accepted) ::close(fd);
  }
  int accept() {
    const int fd = ::accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK);
    if (fd >= 0) accepted.push_back(fd);
    return fd;
  }
  OutboundRequest request() const {
    OutboundRequest r{};
    r.peer.family = r.local.family = AF_INET;
    r.peer.port = listener.port();
    r.peer.ip[0] = 127;
    r.peer.ip[3] = 1;
    return r;
  }
  static std::string receive(int fd) {
    char text[200];
    const ssize_t got = ::recv(fd, text, sizeof text, 0);
    return got < 0 ? "<" + std::to_string(errno) + ">"
                   : std::string(text, static_cast<std::size_t>(got));
  }
  LoopbackListener listener{SOCK_NONBLOCK};
  std::vector<int> accepted;
};

// A peer at a unix socket, in a directory that the server sees as /host.
struct UnixPeer {
  explicit UnixPeer(const std::string& directory, int backlog = 16)
      : path(directory + "/s"), fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(fd, backlog) == 0);
  }
  ~UnixPeer() {
    for (const int one : accepted) ::close(one);
    ::close(fd);
  }
  UnixPeer(const UnixPeer&) = delete;
  UnixPeer& operator=(const UnixPeer&) = delete;
  int accept() {
    const int one = ::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK);
    if (one >= 0) accepted.push_back(one);
    return one;
  }
  // Opens a connection of another client, which waits in the backlog.
  bool is_full() const {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    const int one = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int done = ::connect(one, reinterpret_cast<const sockaddr*>(&at), sizeof at);
    const bool full = done != 0 && errno == EAGAIN;
    ::close(one);
    return full;
  }
  const std::string path;
  const int fd;
  std::vector<int> accepted;
};

std::vector<std::byte> unix_request(const std::string& path, std::uint16_t port = 0) {
  OutboundRequest request{};
  request.peer.family = AF_UNIX;
  request.peer.port = port;
  const auto head = bytes_of(request);
  std::vector<std::byte> body(head.begin(), head.end());
  for (const char c : path) body.push_back(static_cast<std::byte>(c));
  return body;
}

struct Replicas {
  explicit Replicas(bool shares, std::size_t count = 2, bool allows = true)
      : base(event_base_new()) {
    std::string name = "/tmp/crane-outbound-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
    host.directory = directory;
    host.may_connect = allows;
    for (std::size_t i = 0; i < count; ++i) {
      proxies[i] = std::make_unique<Proxy>(base, ProxyOptions{}, host);
      if (!shares) continue;
      auto sockets = SharedSockets::open(directory + "/connections");
      REQUIRE(sockets.ok());
      proxies[i]->share(std::move(sockets).value());
    }
  }
  ~Replicas() {
    for (auto& proxy : proxies) {
      if (proxy) proxy->end();
      proxy.reset();
    }
    CHECK(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    event_base_free(base);
    std::filesystem::remove_all(directory);
  }
  void lead(std::size_t i) {
    REQUIRE(proxies[i]->may_lead(View{1}, 0));
    proxies[i]->lead(true);
  }
  void output(OutputType type, std::span<const std::byte> bytes, std::uint64_t argument = 0) {
    for (auto& proxy : proxies) {
      if (proxy) proxy->output({type, {}, kConn, argument, 1000}, bytes);
    }
  }
  void write(const std::string& text) {
    output(OutputType::kBytes, std::as_bytes(std::span(text)), written);
    written += text.size();
  }
  void turn_loop() {
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    for (auto& proxy : proxies) {
      if (proxy && proxy->leading()) (void)proxy->propose_inputs(1, log);
    }
    for (; committed < log.taken.size(); ++committed) commit(log.taken[committed]);
    for (auto& proxy : proxies) {
      if (!proxy) continue;
      proxy->resume_reading();
      proxy->prune_followed();
    }
  }
  void commit(const Taken& entry) {
    for (auto& proxy : proxies) {
      if (proxy) proxy->committed(entry.type, Index{entry.index}, entry.body);
    }
  }
  template <typename Condition>
  bool until(Condition&& condition) {
    return turned_until(condition, [this] { turn_loop(); });
  }
  // The server requests a connection, which is opened.
  void connect_to(const Peer& peer) {
    const OutboundRequest request = peer.request();
    output(OutputType::kConnect, bytes_of(request));
    REQUIRE(answered());
  }
  void connect_to_unix() {
    output(OutputType::kConnect, unix_request("/host/s"));
    REQUIRE(answered());
    CHECK(log.taken.back().as<ConnectedBody>().error == 0);
  }
  bool answered() {
    return until([this] { return log.types().find("connected") != std::string::npos; });
  }

  event_base* base;
  std::string directory;
  FakeLog log;
  FakeHost host;
  std::array<std::unique_ptr<Proxy>, 2> proxies;
  std::size_t committed = 0;
  std::uint64_t written = 0;
};

}  // namespace

TEST_CASE("the leader opens the connections that its server requests", "[outbound]") {
  Peer peer;
  Replicas r(false);
  r.lead(0);
  r.connect_to(peer);
  const auto body = r.log.taken[0].as<ConnectedBody>();
  CHECK(body.conn == ConnId{kConn});
  CHECK(body.error == 0);
  CHECK(body.local.ip[0] == 127);
  const int fd = peer.accept();
  REQUIRE(fd >= 0);
  CHECK(peer_of(fd).port == body.local.port);
  r.write("question");
  CHECK(Peer::receive(fd) == "question");
  REQUIRE(::send(fd, "answer", 6, 0) == 6);
  REQUIRE(r.until([&] { return r.log.types() == "connected data"; }));
  CHECK(r.log.taken[1].data() == "answer");
  CHECK(r.log.taken[1].as<DataBody>().conn == ConnId{kConn});
  r.output(OutputType::kClose, {});
  CHECK(Peer::receive(fd).empty());
  for (auto& proxy : r.proxies) CHECK(proxy->connections() == 0);  // CLIENT-1
  CHECK(r.proxies[1]->destinations().all().begin()->second.connections == 1);
}

TEST_CASE("a refusal by the peer or by the policy is proposed", "[outbound]") {
  OutboundRequest request;
  {
    const Peer gone;
    request = gone.request();
  }
  const bool allowed = GENERATE(true, false);
  Replicas r(false, 1, allowed);
  r.lead(0);
  r.output(OutputType::kConnect, bytes_of(request));
  REQUIRE(r.answered());
  CHECK(r.log.taken[0].as<ConnectedBody>().error == ECONNREFUSED);
  r.output(OutputType::kClose, {});
  CHECK(r.proxies[0]->connections() == 0);
  CHECK(r.proxies[0]->destinations().all().begin()->second.allowed == allowed);
}

TEST_CASE("connect fails with the errno of bind", "[outbound]") {
  const Peer peer;
  OutboundRequest request = peer.request();
  request.local = request.peer;
  Replicas r(false, 1);
  r.lead(0);
  SECTION("an address of another host") {
    request.local.ip[0] = 198;
    request.local.port = 0;
    r.output(OutputType::kConnect, bytes_of(request));
    REQUIRE(r.answered());
    CHECK(r.log.taken[0].as<ConnectedBody>().error == EADDRNOTAVAIL);
  }
  SECTION("a port in use") {
    r.output(OutputType::kConnect, bytes_of(request));
    REQUIRE(r.answered());
    CHECK(r.log.taken[0].as<ConnectedBody>().error == EADDRINUSE);
  }
  r.output(OutputType::kClose, {});
}

TEST_CASE("a connection that the server closes before the outcome is not opened", "[outbound]") {
  Peer peer;
  Replicas r(true, 1);
  r.lead(0);
  const OutboundRequest request = peer.request();
  r.output(OutputType::kConnect, bytes_of(request));
  CHECK(r.proxies[0]->connections() == 1);
  r.output(OutputType::kClose, {});
  CHECK(r.proxies[0]->connections() == 0);
  for (int i = 0; i < 20; ++i) r.turn_loop();
  CHECK(r.log.taken.empty());
  // A late CONNECTED of an earlier leader does not open it either.
  ConnectedBody late{};
  late.conn = ConnId{kConn};
  r.proxies[0]->committed(EntryType::kConnected, Index{7}, bytes_of(late));
  CHECK(r.proxies[0]->connections() == 0);
}

TEST_CASE("the log may be ahead of this replica's server", "[outbound][CLIENT-1]") {
  Peer peer;
  Replicas r(true);
  r.lead(0);
  const OutboundRequest request = peer.request();
  r.proxies[0]->output({OutputType::kConnect, {}, kConn, 0, 1000}, bytes_of(request));
  REQUIRE(r.answered());
  const int fd = peer.accept();
  CHECK(r.proxies[1]->connections() == 1);
  r.proxies[1]->output({OutputType::kConnect, {}, kConn, 0, 1000}, bytes_of(request));
  r.write("as one");
  CHECK(Peer::receive(fd) == "as one");
  r.output(OutputType::kClose, {});
  CHECK(r.until([&] { return r.proxies[1]->connections() == 0; }));
}

TEST_CASE("a connection that the server has opened outlives the leader", "[outbound][CONN-5]") {
  Peer peer;
  Replicas r(true);
  r.lead(0);
  r.connect_to(peer);
  const int fd = peer.accept();
  REQUIRE(fd >= 0);
  r.write("one ");
  REQUIRE(::send(fd, "in ", 3, 0) == 3);
  REQUIRE(r.until([&] { return r.log.taken.size() == 2; }));
  for (std::size_t next : {1U, 0U, 1U}) {
    r.proxies[1 - next]->lead(false);
    r.write("between ");
    r.lead(next);
    CHECK(r.proxies[next]->counters().last_adopted == 1);
    CHECK(r.proxies[next]->counters().last_reset == 0);
    r.turn_loop();
    r.write("more ");
  }
  REQUIRE(::send(fd, "out", 3, 0) == 3);
  REQUIRE(r.until([&] { return r.log.taken.size() == 3; }));
  CHECK(r.log.taken[1].data() + r.log.taken[2].data() == "in out");
  CHECK(Peer::receive(fd) == "one between more between more between more ");
  r.output(OutputType::kClose, {});
  CHECK(Peer::receive(fd).empty());
}

TEST_CASE("a new leader opens connections that have no outcome in the log", "[outbound]") {
  Peer peer;
  const bool shares = GENERATE(true, false);
  Replicas r(shares);
  r.lead(0);
  const OutboundRequest request = peer.request();
  r.output(OutputType::kConnect, bytes_of(request));
  SECTION("the old leader was still connecting") {}
  SECTION("the old leader's proposal of the outcome was not committed") {
    // The event loop reports the outcome, and it is not proposed.
    for (int i = 0; i < 20; ++i) event_base_loop(r.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    CHECK(r.proxies[0]->batch().entries() == 1);
  }
  const int first = peer.accept();
  REQUIRE(first >= 0);
  r.proxies[0]->lead(false);
  r.lead(1);
  CHECK(r.proxies[1]->counters().last_reset == 0);  // the server knew of no connection
  REQUIRE(r.answered());
  CHECK(r.log.taken.size() == 1);
  CHECK(r.log.taken[0].as<ConnectedBody>().error == 0);
  int second = -1;
  REQUIRE(r.until([&] { return (second = peer.accept()) >= 0; }));
  r.write("once");
  CHECK(Peer::receive(second) == "once");
  std::string end = Peer::receive(first);
  CHECK((end.empty() || end == "<104>"));
  r.output(OutputType::kClose, {});
}

TEST_CASE("a replica that recovers opens the connections without an outcome", "[outbound]") {
  Peer peer;
  Replicas r(true, 1);
  r.proxies[0]->restore_attempt(ConnId{kConn}, {peer.request()});
  r.proxies[0]->recover_at(2000);
  r.turn_loop();
  CHECK(peer.accept() < 0);  // CLIENT-2
  r.lead(0);
  REQUIRE(r.answered());
  CHECK(peer.accept() >= 0);
  r.output(OutputType::kClose, {});
  // A connection that was closed before the checkpoint.
  ConnectedBody late{};
  late.conn = ConnId{kOutboundBit | 1999};
  r.proxies[0]->committed(EntryType::kConnected, Index{7}, bytes_of(late));
  CHECK(r.proxies[0]->connections() == 0);
}

TEST_CASE("a replica that recovers reports the peers of its server", "[outbound]") {
  Replicas r(true, 1);
  ConnectBody opened{};
  opened.peer.family = AF_INET;
  opened.peer.port = 3306;
  opened.peer.ip[0] = 10;
  opened.peer.ip[3] = 1;
  r.proxies[0]->restore(ConnId{kConn}, opened, {});
  r.proxies[0]->restore(ConnId{17}, opened, {});  // a client
  const auto& named = r.proxies[0]->destinations().all();
  REQUIRE(named.size() == 1);
  CHECK(named.begin()->first == "10.0.0.1:3306");
  CHECK(named.begin()->second.connections == 1);
}

TEST_CASE("without shared sockets a START resets the open connections", "[outbound]") {
  Peer peer;
  Replicas r(false);
  r.lead(0);
  r.connect_to(peer);
  const int fd = peer.accept();
  r.proxies[0]->lead(false);
  CHECK(Peer::receive(fd) == "<104>");
  StartBody start{};
  start.resets = Resets::kAll;
  for (auto& proxy : r.proxies) proxy->committed(EntryType::kStart, Index{50}, bytes_of(start));
  r.lead(1);
  r.write("nowhere");
  r.turn_loop();
  CHECK(r.log.types() == "connected");
  CHECK(r.proxies[1]->queued_bytes() == 0);
  CHECK(peer.accept() < 0);
  r.output(OutputType::kClose, {}, 1);
  CHECK(r.proxies[1]->connections() == 0);
}

TEST_CASE("the leader opens a unix socket of its host", "[outbound]") {
  Replicas r(true);
  UnixPeer peer(r.directory);
  r.lead(0);
  r.connect_to_unix();
  CHECK(r.log.taken[0].as<ConnectedBody>().local.family == AF_UNIX);
  CHECK(r.log.taken[0].as<ConnectedBody>().socket == SocketId{0});  // no other node takes it
  CHECK(r.log.taken[0].as<ConnectedBody>().slot == kNoTableSlot);
  const int fd = peer.accept();
  REQUIRE(fd >= 0);
  r.write("question");
  CHECK(Peer::receive(fd) == "question");
  const std::string answer(3000, 'a');
  REQUIRE(::send(fd, answer.data(), answer.size(), 0) == 3000);
  REQUIRE(r.until([&] { return r.log.types() == "connected data"; }));
  CHECK(r.log.taken[1].data() == answer);
  CHECK(r.proxies[1]->destinations().all().begin()->first == "/host/s");
  r.output(OutputType::kClose, {});
  CHECK(Peer::receive(fd).empty());
  r.turn_loop();
  for (auto& proxy : r.proxies) CHECK(proxy->connections() == 0);  // CLIENT-1
}

TEST_CASE("the leader reads a FIFO of its host once it has a writer", "[outbound]") {
  Replicas r(true);
  const std::string path = r.directory + "/f";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  r.lead(0);
  r.output(OutputType::kConnect, unix_request("/host/f", kFifoToRead));
  for (int i = 0; i < 10; ++i) r.turn_loop();
  CHECK(r.log.types().empty());
  const int writer = ::open(path.c_str(), O_WRONLY | O_NONBLOCK);
  REQUIRE(writer >= 0);
  REQUIRE(::write(writer, "secret", 6) == 6);
  REQUIRE(r.until([&] { return r.log.types() == "connected data"; }));
  CHECK(r.log.taken[0].as<ConnectedBody>().error == 0);
  CHECK(r.log.taken[1].data() == "secret");
  const std::string more(20'000, 'm');
  REQUIRE(::write(writer, more.data(), more.size()) == 20'000);
  ::close(writer);
  REQUIRE(r.until([&] { return r.log.types().ends_with(" shutdown"); }));
  std::string all;
  for (std::size_t i = 2; i + 1 < r.log.taken.size(); ++i) all += r.log.taken[i].data();
  CHECK(all == more);
  CHECK((::open(path.c_str(), O_WRONLY | O_NONBLOCK) < 0 && errno == ENXIO));
  r.output(OutputType::kClose, {});
  r.turn_loop();
  for (auto& proxy : r.proxies) CHECK(proxy->connections() == 0);  // CLIENT-1
}

TEST_CASE("a FIFO that the server has closed is no longer read", "[outbound]") {
  ::signal(SIGPIPE, SIG_IGN);
  Replicas r(false);
  const std::string path = r.directory + "/f";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  r.lead(0);
  r.output(OutputType::kConnect, unix_request("/host/f", kFifoToRead));
  const bool is_written = GENERATE(true, false);
  const int writer = ::open(path.c_str(), O_WRONLY | O_NONBLOCK);
  REQUIRE(writer >= 0);
  if (is_written) {
    REQUIRE(::write(writer, "x", 1) == 1);
    REQUIRE(r.until([&] { return r.log.types() == "connected data"; }));
  }
  r.output(OutputType::kClose, {});
  REQUIRE(r.until([&] { return ::write(writer, "y", 1) < 0 && errno == EPIPE; }));
  ::close(writer);
}

TEST_CASE("open fails with the error of the FIFO", "[outbound]") {
  Replicas r(false);
  std::ofstream(r.directory + "/plain") << "text";
  r.lead(0);
  const bool is_plain = GENERATE(true, false);
  r.output(OutputType::kConnect,
           unix_request(is_plain ? "/host/plain" : "/host/none", kFifoToRead));
  REQUIRE(r.answered());
  CHECK(r.log.taken[0].as<ConnectedBody>().error == (is_plain ? ENXIO : ENOENT));
}

TEST_CASE("connect fails with the error of the unix socket", "[outbound]") {
  const bool allowed = GENERATE(true, false);
  Replicas r(true, 1, allowed);
  r.lead(0);
  const auto error_of = [&r](const std::string& path) {
    r.output(OutputType::kConnect, unix_request(path));
    REQUIRE(r.answered());
    const auto body = r.log.taken[0].as<ConnectedBody>();
    r.output(OutputType::kClose, {});
    return body.error;
  };
  const auto expected = [&](int error) { return allowed ? error : ECONNREFUSED; };
  SECTION("nothing exists at the path") { CHECK(error_of("/host/s") == expected(ENOENT)); }
  SECTION("no process listens") {
    { const UnixPeer gone(r.directory); }
    CHECK(error_of("/host/s") == expected(ECONNREFUSED));
  }
  SECTION("it is not a socket") {
    std::filesystem::create_directory(r.directory + "/s");
    CHECK(error_of("/host/s") == expected(ECONNREFUSED));
  }
  SECTION("a link points outside the directory") {
    const std::string outside = r.directory + "-outside";
    std::filesystem::create_directory(outside);
    {
      const UnixPeer other(outside);
      std::filesystem::create_symlink(other.path, r.directory + "/s");
      CHECK(error_of("/host/s") == expected(EACCES));
    }
    std::filesystem::remove_all(outside);
  }
  CHECK(r.proxies[0]->destinations().all().begin()->second.allowed == allowed);
}

TEST_CASE("connect is retried while the backlog of a unix socket is full", "[outbound]") {
  Replicas r(true, 1);
  UnixPeer peer(r.directory, 1);
  while (!peer.is_full()) continue;
  r.lead(0);
  r.output(OutputType::kConnect, unix_request("/host/s"));
  for (int i = 0; i < 20; ++i) r.turn_loop();
  CHECK(r.log.types().empty());
  SECTION("there is room") {
    while (peer.accept() >= 0) continue;
    REQUIRE(r.answered());
    CHECK(r.log.taken[0].as<ConnectedBody>().error == 0);
    r.write("here");
    CHECK(Peer::receive(peer.accept()) == "here");
  }
  SECTION("the server no longer wants the connection") {}
  r.output(OutputType::kClose, {});
  CHECK(r.proxies[0]->connections() == 0);
}

TEST_CASE("a connection to a unix socket ends with its leader", "[outbound][CONN-5]") {
  Replicas r(true);
  UnixPeer peer(r.directory);
  r.lead(0);
  r.connect_to_unix();
  const int fd = peer.accept();
  r.write("one ");
  CHECK(Peer::receive(fd) == "one ");
  r.proxies[0]->lead(false);
  CHECK(Peer::receive(fd).empty());
  r.write("between ");
  const std::size_t next = GENERATE(0U, 1U);
  r.lead(next);
  REQUIRE(r.until([&] { return r.log.types() == "connected reset"; }));
  CHECK(r.log.taken[1].as<ConnBody>().conn == ConnId{kConn});
  r.write("more");
  r.turn_loop();
  CHECK(r.log.types() == "connected reset");
  CHECK(peer.accept() < 0);  // no replica opens it again
  for (auto& proxy : r.proxies) CHECK(proxy->queued_bytes() == 0);
  r.output(OutputType::kClose, {});
  r.turn_loop();
  for (auto& proxy : r.proxies) CHECK(proxy->connections() == 0);
}

TEST_CASE("the reset of a unix socket also ends it if another process holds it open",
          "[outbound]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const int other = ::dup(ends[0]);
  host_socket(ends[0]).reset();
  char byte;
  CHECK(::recv(ends[1], &byte, 1, MSG_DONTWAIT) == 0);
  ::close(other);
  ::close(ends[1]);
}

TEST_CASE("a new leader opens a unix socket that has no outcome in the log", "[outbound]") {
  Replicas r(true);
  UnixPeer peer(r.directory);
  r.lead(0);
  r.output(OutputType::kConnect, unix_request("/host/s"));
  for (int i = 0; i < 20; ++i) event_base_loop(r.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  const int first = peer.accept();
  REQUIRE(first >= 0);
  r.proxies[0]->lead(false);
  CHECK(Peer::receive(first).empty());
  r.lead(1);
  REQUIRE(r.answered());
  r.write("once");
  CHECK(Peer::receive(peer.accept()) == "once");
  r.output(OutputType::kClose, {});
}

TEST_CASE("a replica that recovers during an attempt at a unix socket completes it", "[outbound]") {
  Replicas r(true, 1);
  UnixPeer peer(r.directory);
  Destination to;
  to.request.peer.family = AF_UNIX;
  to.path = "/host/s";
  r.proxies[0]->restore_attempt(ConnId{kConn}, to);
  r.proxies[0]->recover_at(2000);
  r.lead(0);
  REQUIRE(r.answered());
  CHECK(peer.accept() >= 0);
  r.output(OutputType::kClose, {});
}
