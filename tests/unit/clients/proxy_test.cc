// SPDX-License-Identifier: Apache-2.0
// The proxy with real TCP clients and a log that takes everything.
#include "proxy/clients/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "tests/unit/clients/fake_host.h"
#include "tests/unit/clients/fake_log.h"
#include "tests/unit/clients/loopback_listener.h"
#include "tests/unit/no_descriptors.h"

using namespace crane;
using namespace crane::proxy;

namespace {

struct Fixture {
  explicit Fixture(ProxyOptions options = {}) : base(event_base_new()) {
    options.queued_bytes_max = 4 << 20;
    proxy = std::make_unique<Proxy>(base, options, host);
    address =
        LoopbackListener().address;  // a free port; a port chosen by bind would be lost at shutdown
    listener = ::socket(AF_INET, SOCK_STREAM, 0);
    const int yes = 1;
    REQUIRE(::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    const auto* at = reinterpret_cast<const sockaddr*>(&address);
    REQUIRE(::bind(listener, at, sizeof address) == 0);
    REQUIRE(::listen(listener, 64) == 0);
    proxy->add_listener(80, listener);
  }
  ~Fixture() {
    for (const int fd : clients) ::close(fd);
    proxy.reset();
    CHECK(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    event_base_free(base);
  }
  void serve() {
    proxy->set_listening(80, true);
    proxy->lead(true);
  }
  int connect() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    clients.push_back(fd);
    return fd;
  }
  bool is_refused() {
    clients.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    return ::connect(clients.back(), to, sizeof address) != 0 && errno == ECONNREFUSED;
  }
  void turn_loop() {
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    (void)proxy->propose_inputs(1, log);
    commit();
  }
  // Commits all proposed entries.
  void commit() {
    for (; committed < log.taken.size(); ++committed) {
      const Taken& entry = log.taken[committed];
      proxy->committed(entry.type, Index{entry.index}, entry.body);
    }
    proxy->resume_reading();
  }
  template <typename Condition>
  bool until(Condition&& condition) {
    return turned_until(condition, [this] { turn_loop(); });
  }
  void output(OutputType type, std::uint64_t conn, const std::string& text = "",
              std::uint64_t argument = 0) {
    if (type == OutputType::kBytes)
      argument = std::exchange(written[conn], written[conn] + text.size());
    proxy->output({type, {}, conn, argument, 0}, std::as_bytes(std::span(text)));
  }
  static std::string receive(int fd) {
    char text[100];
    const ssize_t got = ::recv(fd, text, sizeof text, 0);
    return got < 0 ? std::string("<") + std::to_string(errno) + ">"
                   : std::string(text, static_cast<std::size_t>(got));
  }

  FakeLog log;
  FakeHost host;
  event_base* base;
  std::unique_ptr<Proxy> proxy;
  sockaddr_in address{};
  int listener = -1;
  std::vector<int> clients;
  std::size_t committed = 0;  // of log.taken
  std::map<std::uint64_t, std::uint64_t> written;
};

}  // namespace

TEST_CASE("a client's connection and first request are in one batch and are answered", "[proxy]") {
  Fixture f;
  f.serve();
  const int client = f.connect();
  REQUIRE(::send(client, "PING", 4, 0) == 4);
  REQUIRE(f.until([&] { return f.log.taken.size() >= 2; }));
  REQUIRE(f.log.types() == "connect data");
  const auto body = f.log.taken[0].as<ConnectBody>();
  REQUIRE(body.port == 80);
  REQUIRE(text(body.local) == "127.0.0.1:80");
  REQUIRE(body.peer.port != 0);
  REQUIRE(f.log.taken[1].as<DataBody>().conn == ConnId{f.log.taken[0].index});
  const std::uint64_t conn = f.log.taken[0].index;
  f.output(OutputType::kBytes, conn, "PONG");
  REQUIRE(Fixture::receive(client) == "PONG");
  f.output(OutputType::kClose, conn);
  REQUIRE(Fixture::receive(client).empty());
  REQUIRE(f.proxy->connections() == 0);
  REQUIRE(f.host.events > 0);
}

TEST_CASE("R2: only a leader with a listening server accepts clients", "[proxy][LISTEN-2]") {
  Fixture f;
  f.connect();
  for (int i = 0; i < 20; ++i) f.turn_loop();
  REQUIRE(f.log.taken.empty());
  f.proxy->lead(true);
  CHECK(f.is_refused());
  f.output(OutputType::kListen, 80);
  f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 1; }));
  f.output(OutputType::kUnlisten, 80);
  CHECK(f.is_refused());
  f.output(OutputType::kUnlisten, 80);
  f.output(OutputType::kListen, 80);
  const int client = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 2; }));
  f.output(OutputType::kBytes, f.log.taken[1].index, "as ever");
  CHECK(Fixture::receive(client) == "as ever");
  f.output(OutputType::kUnlisten, 80, "", 1);
  f.connect();  // this client waits for the restarted server
  for (int i = 0; i < 20; ++i) f.turn_loop();
  REQUIRE(f.log.taken.size() == 2);
  f.output(OutputType::kListen, 80);
  REQUIRE(f.until([&] { return f.log.taken.size() == 3; }));
}

TEST_CASE("a follower's server opens and closes no port that other nodes share",
          "[proxy][LISTEN-2]") {
  const bool shares = GENERATE(true, false);
  ProxyOptions options;
  options.shares_listeners = shares;
  Fixture f(options);
  f.proxy->set_listening(80, false);
  CHECK_FALSE(f.is_refused());
  REQUIRE(::shutdown(f.listener, SHUT_RDWR) == 0);  // as any holder of the port can
  f.output(OutputType::kListen, 80);
  CHECK(f.is_refused() == shares);
  f.proxy->lead(true);
  CHECK_FALSE(f.is_refused());
}

TEST_CASE("a new leader that serves takes clients at a port that an earlier leader closed",
          "[proxy][LISTEN-2]") {
  Fixture f;
  REQUIRE(::shutdown(f.listener, SHUT_RDWR) == 0);
  f.proxy->lead(true);
  f.output(OutputType::kListen, 81);  // its socket has not arrived yet
  f.proxy->add_listener(81, ::dup(f.listener), 16);
  CHECK_FALSE(f.is_refused());
}

TEST_CASE("without free descriptors the loop does not spin, and it serves once there are some",
          "[proxy]") {
  Fixture f;
  f.serve();
  const bool has_clients = GENERATE(false, true);
  if (has_clients) {
    f.connect();
    REQUIRE(f.until([&] { return f.proxy->connections() == 1; }));
  }
  const int client = f.connect();
  const int before = f.host.events;
  {
    const test::NoDescriptors none;
    for (int i = 0; i < 1000; ++i) f.turn_loop();
    CHECK(f.host.events - before < 100);
  }
  REQUIRE(::send(client, "PING", 4, 0) == 4);
  const std::size_t all = has_clients ? 2 : 1;
  CHECK(f.until([&] { return f.proxy->connections() == all; }));
}

TEST_CASE("C8: stepping down resets every client and drops the input that was read", "[proxy]") {
  Fixture f;
  f.serve();
  const int first = f.connect();
  const int second = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 2; }));
  REQUIRE(::send(first, "x", 1, 0) == 1);
  event_base_loop(f.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  f.proxy->lead(false);
  REQUIRE(f.proxy->connections() == 0);
  REQUIRE(f.proxy->batch().empty());
  REQUIRE(Fixture::receive(first) == "<104>");  // ECONNRESET
  REQUIRE(Fixture::receive(second) == "<104>");
  REQUIRE(f.proxy->counters().reset_leader == 2);
  // Records for the clients of the old leadership have no effect.
  f.output(OutputType::kBytes, f.log.taken[0].index, "late");
}

TEST_CASE("a refused connection and a close with unread input become resets", "[proxy]") {
  Fixture f;
  f.serve();
  const int refused = f.connect();
  const int closed = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 2; }));
  f.output(OutputType::kRefused, f.log.taken[0].index);
  f.output(OutputType::kClose, f.log.taken[1].index, "", 1);
  REQUIRE(Fixture::receive(refused) == "<104>");
  REQUIRE(Fixture::receive(closed) == "<104>");
  REQUIRE(f.proxy->connections() == 0);
  REQUIRE(f.proxy->counters().refused == 1);
}

TEST_CASE("a leader that refuses service resets its clients, and the server learns of it",
          "[proxy]") {
  Fixture f;
  f.serve();
  const int first = f.connect();
  const int second = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 2; }));
  f.proxy->refuse(true);
  REQUIRE(Fixture::receive(first) == "<104>");
  REQUIRE(Fixture::receive(second) == "<104>");
  REQUIRE(f.proxy->counters().reset_leader == 2);
  REQUIRE(f.until([&] { return f.log.taken.size() == 4; }));
  REQUIRE(f.log.taken[2].type == EntryType::kReset);
  REQUIRE(f.log.taken[3].type == EntryType::kReset);
}

TEST_CASE("bytes and a FIN that arrive together are both read", "[proxy]") {
  Fixture f;
  f.serve();
  const int client = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 1; }));
  for (int i = 0; i < 20; ++i) f.turn_loop();
  REQUIRE(::send(client, "last words", 10, 0) == 10);
  ::shutdown(client, SHUT_WR);
  REQUIRE(f.until([&] { return f.log.taken.size() == 3; }));
  REQUIRE(f.log.types() == "connect data shutdown");
}

TEST_CASE("an urgent byte is read at its place in the stream and marked", "[proxy]") {
  Fixture f;
  f.serve();
  const int client = f.connect();
  // As the first bytes of a connection, and after bytes that the kernel keeps.
  const auto read = [&f] {
    std::string all;
    for (const Taken& entry : f.log.taken) {
      if (entry.type != EntryType::kData) continue;
      all += entry.data();
      if (is_urgent(entry.as<DataBody>())) all += "<mark>";
    }
    return all;
  };
  std::string sent;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(::send(client, "ab!", 3, MSG_OOB) == 3);
    REQUIRE(::send(client, "c", 1, 0) == 1);
    sent += "ab!<mark>c";
    INFO(read());
    REQUIRE(f.until([&] { return read() == sent; }));
  }
  // Only urgent bytes.
  REQUIRE(::send(client, "?", 1, MSG_OOB) == 1);
  REQUIRE(f.until([&] { return f.log.taken.back().data() == "?"; }));
  CHECK(is_urgent(f.log.taken.back().as<DataBody>()));
  ::shutdown(client, SHUT_WR);
  REQUIRE(f.until([&] { return f.log.taken.back().type == EntryType::kShutdown; }));
}

TEST_CASE("urgent output of the server is urgent for its client", "[proxy]") {
  Fixture f;
  f.serve();
  const int client = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 1; }));
  const std::uint64_t conn = f.log.taken[0].index;
  const std::string text = "alarm";
  f.output(OutputType::kBytes, conn, "an ");
  f.proxy->output({OutputType::kBytes, {.urgent = true}, conn, 3, 0},
                  std::as_bytes(std::span(text)));
  f.written[conn] += text.size();
  f.output(OutputType::kBytes, conn, " ended");
  pollfd special{client, POLLPRI, 0};
  REQUIRE(::poll(&special, 1, 5000) == 1);
  char byte = 0;
  REQUIRE(::recv(client, &byte, 1, MSG_OOB) == 1);
  CHECK(byte == 'm');
  std::string received;
  while (received.size() < std::size("an alar ended") - 1) received += Fixture::receive(client);
  CHECK(received == "an alar ended");
}

TEST_CASE("while paused the proxy reads nothing, afterwards it reads everything", "[proxy]") {
  Fixture f;
  f.serve();
  const int client = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 1; }));
  f.proxy->pause(true);
  REQUIRE(::send(client, "later", 5, 0) == 5);
  f.connect();
  for (int i = 0; i < 20; ++i) f.turn_loop();
  REQUIRE(f.log.taken.size() == 1);
  f.proxy->pause(false);
  REQUIRE(f.until([&] { return f.log.taken.size() == 3; }));
}

TEST_CASE("a full receive window stops one client until the server reads", "[proxy]") {
  Fixture f;
  f.serve();
  const int client = f.connect();
  const std::string much(400'000, 'x');
  std::size_t sent = 0;
  const auto push = [&] {
    const ssize_t n = ::send(client, much.data() + sent, much.size() - sent, MSG_DONTWAIT);
    if (n > 0) sent += static_cast<std::size_t>(n);
  };
  std::size_t got = 0;
  const auto count = [&] {
    got = 0;
    for (const Taken& t : f.log.taken) {
      if (t.type == EntryType::kData) got += t.data().size();
    }
    return got;
  };
  REQUIRE(f.until([&] { return push(), count() == 32 * 1024; }));
  for (int i = 0; i < 20; ++i) f.turn_loop();
  REQUIRE(count() == 32 * 1024);  // the server has read nothing yet
  f.output(OutputType::kConsumed, f.log.taken[0].index, "", 1);
  REQUIRE(f.until([&] { return push(), count() == 256 * 1024 + 1; }));
  for (int i = 0; i < 20; ++i) f.turn_loop();
  REQUIRE(count() == 256 * 1024 + 1);
  f.output(OutputType::kConsumed, f.log.taken[0].index, "", 200'000);
  REQUIRE(f.until([&] { return push(), count() == much.size(); }));
}

TEST_CASE("the limit on queued output resets the slowest client", "[proxy]") {
  Fixture f;
  f.serve();
  const int slow = f.connect();
  REQUIRE(f.until([&] { return f.log.taken.size() == 1; }));
  const std::string part(60'000, 'x');
  for (int i = 0; i < 400 && f.proxy->counters().reset_slow == 0; ++i) {
    f.output(OutputType::kBytes, f.log.taken[0].index, part);
  }
  REQUIRE(f.proxy->counters().reset_slow == 1);
  REQUIRE(f.proxy->queued_bytes() == 0);
  REQUIRE(f.proxy->propose_inputs(1, f.log).ok());
  REQUIRE(f.log.taken.back().type == EntryType::kReset);
  (void)slow;
}

TEST_CASE("the socket of an address closes when the server leaves it; the port's others stay open",
          "[server]") {
  Fixture f;
  LoopbackListener first, second;
  f.proxy->add_listener({81, "127.0.0.1"}, ::dup(first.fd));
  f.proxy->add_listener({81, "127.0.0.2"}, ::dup(second.fd));
  const auto listens = [](int fd) {
    int on = 0;
    socklen_t size = sizeof on;
    return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &size) == 0 && on != 0;
  };
  f.proxy->set_listening({81, "127.0.0.1"}, true);
  f.proxy->set_listening({81, "127.0.0.2"}, true);
  f.proxy->lead(true);
  CHECK(f.proxy->takes_clients({81, "127.0.0.1"}));
  f.proxy->set_listening({81, "127.0.0.1"}, false);
  CHECK_FALSE(listens(first.fd));
  CHECK(listens(second.fd));
  // The server restarts: clients wait until it is up without that address.
  f.proxy->set_listening({81, "127.0.0.2"}, false, true);
  CHECK(listens(second.fd));
  f.proxy->set_listening({81, "127.0.0.1"}, true);
  CHECK(listens(first.fd));
  CHECK(listens(second.fd));
  f.proxy->end_restart();
  CHECK_FALSE(listens(second.fd));
}

TEST_CASE("a socket that the restarted server left is closed for another address of the same port",
          "[server]") {
  Fixture f;
  LoopbackListener all;
  f.proxy->add_listener({81, "0.0.0.0"}, ::dup(all.fd));
  f.proxy->set_listening({81, "0.0.0.0"}, true);
  f.proxy->lead(true);
  f.proxy->make_way({81, "127.0.0.1"});
  CHECK(f.proxy->takes_clients({81, "0.0.0.0"}));  // the server has not left it
  f.proxy->set_listening({81, "0.0.0.0"}, false, true);
  f.proxy->make_way({81, "::1"});
  CHECK(f.proxy->takes_clients({81, "0.0.0.0"}));
  f.proxy->make_way({81, "127.0.0.1"});
  CHECK_FALSE(f.proxy->takes_clients({81, "0.0.0.0"}));
}
