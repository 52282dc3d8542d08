// SPDX-License-Identifier: Apache-2.0
// GOAL    The next leader of a host serves the clients of a killed one. Clients in the log
//         continue, clients that were accepted but not committed are proposed again, and clients
//         whose socket is missing are reset.
// METHOD  Two processes with a Proxy each. The first one leads, reports the entries of its log, and
//         is killed.
// CHECKS  CLIENT-2, KEEPER-1; how a Proxy treats the sockets that it adopts.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "dmt/base/clock.h"
#include "proxy/clients/proxy.h"
#include "tests/unit/clients/fake_host.h"
#include "tests/unit/clients/fake_log.h"
#include "tests/unit/clients/loopback_listener.h"

using namespace crane;
using namespace crane::proxy;

namespace {

struct Node {
  Node(const std::string& table, int listener) {
    proxy = std::make_unique<Proxy>(base, ProxyOptions{}, host);
    auto sockets = SharedSockets::open(table);
    if (sockets.ok()) proxy->share(std::move(sockets).value());
    proxy->add_listener(80, ::dup(listener));
    proxy->set_listening(80, true);
  }
  ~Node() {
    proxy.reset();
    event_base_free(base);
  }
  bool lead() {
    const bool may =
        turned_until([this] { return proxy->may_lead(View{1}, monotonic_ns()); }, [] {});
    if (may) proxy->lead(true);
    return may;
  }
  void turn_loop() {
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    (void)proxy->propose_inputs(1, log);
    for (; committed < log.taken.size(); ++committed) commit(log.taken[committed]);
    proxy->resume_reading();
  }
  void commit(const Taken& entry) { proxy->committed(entry.type, Index{entry.index}, entry.body); }
  template <typename Condition>
  bool until(Condition&& condition) {
    return turned_until(condition, [this] { turn_loop(); });
  }

  event_base* base = event_base_new();
  FakeLog log;
  FakeHost host;
  std::unique_ptr<Proxy> proxy;
  std::size_t committed = 0;  // of log.taken
};

struct Host {
  Host() {
    std::string name = "/tmp/crane-sharing-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
    REQUIRE(::pipe(sent) == 0);
  }
  ~Host() {
    if (leader > 0) end_leader();
    for (const int fd : sent) ::close(fd);
    std::filesystem::remove_all(directory);
  }
  std::string table() const { return directory + "/connections"; }
  int connect(const std::string& text) {
    const int fd = listener.connect();
    REQUIRE(::send(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return fd;
  }
  // Starts a leader that takes `entries` into its log and accepts `clients`. It reports the entries
  // and waits to be killed.
  void start_leader(std::size_t entries, std::size_t clients = 1) {
    leader = ::fork();
    if (leader != 0) return;
    Node node(table(), listener.fd);
    if (!node.lead()) ::_exit(1);
    if (entries == 0) node.log.room = 0;
    (void)node.until(
        [&] { return node.log.taken.size() >= entries && node.proxy->connections() >= clients; });
    for (const Taken& entry : node.log.taken) {
      const std::uint64_t head[] = {static_cast<std::uint64_t>(entry.type), entry.index,
                                    entry.body.size()};
      (void)!::write(sent[1], head, sizeof head);
      (void)!::write(sent[1], entry.body.data(), entry.body.size());
    }
    const std::uint64_t last[3] = {};
    (void)!::write(sent[1], last, sizeof last);
    for (;;) ::pause();
  }
  // The entries that the leader's log took.
  std::vector<Taken> read_log() const {
    std::vector<Taken> all;
    std::uint64_t head[3];
    while (::read(sent[0], head, sizeof head) == sizeof head && head[0] != 0) {
      Taken entry{static_cast<EntryType>(head[0]), 0, std::vector<std::byte>(head[2]), head[1]};
      REQUIRE(::read(sent[0], entry.body.data(), head[2]) == static_cast<ssize_t>(head[2]));
      all.push_back(std::move(entry));
    }
    return all;
  }
  void end_leader() {
    ::kill(leader, SIGKILL);
    ::waitpid(leader, nullptr, 0);
    leader = -1;
  }
  std::string directory;
  LoopbackListener listener;
  int sent[2];
  pid_t leader = -1;
};

void write(Proxy& proxy, std::uint64_t conn, std::uint64_t at, const std::string& text) {
  proxy.output({OutputType::kBytes, {}, conn, at, 0}, std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("a client in the log continues with the next leader", "[sharing][CLIENT-2]") {
  Host host;
  const int client = host.connect("first ");
  host.start_leader(2);
  const std::vector<Taken> log = host.read_log();
  REQUIRE(log.size() == 2);
  Node node(host.table(), host.listener.fd);
  for (const Taken& entry : log) node.commit(entry);
  write(*node.proxy, log[0].index, 0,
        "answer");  // the leader's server has not written it yet
  REQUIRE(::send(client, "second", 6, 0) == 6);
  host.end_leader();
  REQUIRE(node.lead());
  CHECK(node.proxy->counters().last_adopted == 1);
  CHECK(node.proxy->counters().last_reset == 0);
  CHECK(receive(client) == "answer");
  REQUIRE(node.until([&] { return !node.log.taken.empty(); }));
  CHECK(node.log.types() == "data");
  CHECK(node.log.taken[0].data() == "second");
  CHECK(node.log.taken[0].as<DataBody>().conn == ConnId{log[0].index});
  ::close(client);
}

TEST_CASE("a client that was accepted but not committed is proposed by the next leader",
          "[sharing]") {
  Host host;
  const int client = host.connect("hello");
  host.start_leader(0);
  REQUIRE(host.read_log().empty());
  Node node(host.table(), host.listener.fd);
  host.end_leader();
  REQUIRE(node.lead());
  REQUIRE(node.until([&] { return node.log.taken.size() == 2; }));
  CHECK(node.log.types() == "connect data");
  CHECK(node.log.taken[1].data() == "hello");
  write(*node.proxy, node.log.taken[0].index, 0, "welcome");
  CHECK(receive(client) == "welcome");
  ::close(client);
}

TEST_CASE("uncommitted clients are proposed even if no other client follows them", "[sharing]") {
  constexpr std::size_t kMany = 2 * kAcceptsPerEvent;
  Host host;
  REQUIRE(::listen(host.listener.fd, kMany) == 0);
  std::vector<int> clients;
  while (clients.size() < kMany) clients.push_back(host.connect("x"));
  host.start_leader(0, kMany);
  REQUIRE(host.read_log().empty());
  Node node(host.table(), host.listener.fd);
  host.end_leader();
  REQUIRE(node.lead());
  CHECK(node.until([&] { return node.log.taken.size() == 2 * kMany; }));
  for (const int client : clients) ::close(client);
}

// As on a replica restored from a checkpoint after the connection's end.
TEST_CASE("a client in the log that the next leader does not know is reset and runs nothing again",
          "[sharing]") {
  Host host;
  const int client = host.connect("once");
  host.start_leader(2);
  const std::vector<Taken> log = host.read_log();
  {
    Node other(host.table(), host.listener.fd);
    for (const Taken& entry : log) other.commit(entry);
  }
  Node node(host.table(), host.listener.fd);
  host.end_leader();
  REQUIRE(node.lead());
  CHECK(node.proxy->counters().last_reset == 1);
  CHECK(node.proxy->counters().last_adopted == 0);
  for (int i = 0; i < 10; ++i) node.turn_loop();
  CHECK(node.log.types() == "");
  ::close(client);
}

TEST_CASE("a connection of the server whose client's socket is gone is reset", "[sharing]") {
  Host host;
  const int client = host.connect("x");
  host.start_leader(2);
  const std::vector<Taken> log = host.read_log();
  Node node(host.table(), host.listener.fd);
  // The leader has finished this connection, and its slot belongs to another one.
  auto other = log[0].as<ConnectBody>();
  other.socket = SocketId{value(other.socket) + 1};
  node.commit({EntryType::kConnect, 0, {bytes_of(other).begin(), bytes_of(other).end()}, 7});
  for (const Taken& entry : log) node.commit(entry);
  CHECK(node.proxy->connections() == 1);
  host.end_leader();
  REQUIRE(node.lead());
  CHECK(node.proxy->counters().last_adopted == 1);
  for (const ConnId conn : {ConnId{7}, ConnId{log[0].index}}) node.proxy->reset_unless_known(conn);
  CHECK(node.proxy->counters().last_reset == 1);
  REQUIRE(node.until([&] { return !node.log.taken.empty(); }));
  CHECK(node.log.types() == "reset");
  CHECK(node.log.taken[0].as<ConnBody>().conn == ConnId{7});
  ::close(client);
}

TEST_CASE("a follower trims its server's output as the leader puts it into the socket",
          "[sharing]") {
  Host host;
  const int client = host.connect("x");
  host.start_leader(2);
  const std::vector<Taken> log = host.read_log();
  Node node(host.table(), host.listener.fd);
  for (const Taken& entry : log) node.commit(entry);
  auto table = ConnectionTable::open(host.table());
  REQUIRE(table.ok());
  const std::string part(10'000, 'x');
  for (std::uint64_t i = 0; i < 100; ++i) {
    table.value()->set_put(log[0].as<ConnectBody>().slot, i * part.size());
    write(*node.proxy, log[0].index, i * part.size(), part);
    REQUIRE(node.proxy->queued_bytes() < 50'000);
  }
  host.end_leader();
  ::close(client);
}
