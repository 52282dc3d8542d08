// SPDX-License-Identifier: Apache-2.0
// GOAL    A client does not notice a change of the leader: each of its bytes is committed once and
//         in order, and it gets each byte of the server once and in order.
// METHOD  One TCP connection, three replicas with a server that answers each byte with two, a log
//         that commits late or never. Random steps, with kills of the leader and planned changes
//         between any two; the replicas lag behind each other.
// CHECKS  CONN-4, CONN-5, SOCKET-1; half closes; a replica that recovers; missing sockets.
#include "proxy/replica/clients/connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "proxy/clients/host_sockets.h"
#include "tests/unit/clients/fake_log.h"
#include "tests/unit/clients/loopback_listener.h"

using namespace crane;
using namespace crane::proxy;

namespace {

// Returns two bytes for each byte of `input`, which depend on its position.  `at` is the position
// of `input` in the stream.
std::string answer(const std::string& input, std::size_t at) {
  std::string all;
  for (std::size_t i = 0; i < input.size(); ++i) {
    all += input[i];
    all += static_cast<char>('a' + (at + i) % 23);
  }
  return all;
}

struct TcpPair {
  TcpPair() {
    const LoopbackListener listener;
    client = ::socket(AF_INET, SOCK_STREAM, 0);
    // Small buffers, so that they are sometimes full.
    const int bytes = 8192;
    ::setsockopt(client, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    ::setsockopt(listener.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    listener.connect(client);
    server = ::accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK);
    REQUIRE(server >= 0);
  }
  ~TcpPair() {
    ::close(client);
    ::close(server);
  }
  int client, server;
};

// One connection of one replica.
struct LoneReplica {
  LoneReplica() { c.conn = ConnId{42}; }

  TcpPair tcp;
  const ConnectionOptions options;
  FakeLog log;
  Batch batch;
  Connection c{host_socket(::dup(tcp.server)), std::uint16_t{80}, options};
};

struct Replica {
  std::unique_ptr<Connection> connection;
  std::size_t received = 0;  // entries of the log committed at this replica
  std::string input;         // bytes that its server has read
  std::uint64_t written = 0;
  bool server_closed = false;
};

struct World {
  static constexpr ConnId kConn{42};

  explicit World(unsigned seed) : random(seed) {
    options.send_buffer = 64 * 1024;
    for (Replica& replica : replicas) {
      replica.connection = std::make_unique<Connection>(std::uint16_t{80}, options);
      replica.connection->conn = kConn;
    }
    replicas[0].connection =
        std::make_unique<Connection>(host_socket(::dup(tcp.server)), std::uint16_t{80}, options);
    replicas[0].connection->conn = kConn;
  }

  Replica& leader() { return replicas[lead]; }
  std::size_t any(std::size_t most) { return random() % most; }

  // Commits the log at `replica` up to entry `to`; its server processes the entries at once.
  void receive(Replica& replica, std::size_t to) {
    for (; replica.received < to; ++replica.received) {
      const Taken& entry = log.taken[replica.received];
      Connection& c = *replica.connection;
      if (entry.type == EntryType::kData) {
        c.committed_data(entry.data().size());
        if (!replica.server_closed) serve(replica, entry.data());
      } else if (entry.type == EntryType::kShutdown) {
        c.committed_shutdown();
        replica.server_closed = true;  // the server answers to the end
        (void)c.close(false, batch);
      } else if (entry.type == EntryType::kReset) {
        c.committed_reset();
        ++resets;
      } else if (entry.type == EntryType::kWindow) {
        c.committed_window(entry.as<WindowBody>().total);
      }
    }
  }
  void serve(Replica& replica, const std::string& data) {
    const std::string more = answer(data, replica.input.size());
    replica.input += data;
    replica.connection->consumed(replica.input.size());
    (void)replica.connection->write(replica.written, std::as_bytes(std::span(more)), batch);
    replica.written += more.size();
  }

  void client_sends() {
    if (fin) return;
    std::string part(1 + any(5000), '.');
    for (char& c : part) c = static_cast<char>('A' + any(26));
    const ssize_t n = ::send(tcp.client, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      const std::string taken = part.substr(0, static_cast<std::size_t>(n));
      expected += answer(taken, sent.size());
      sent += taken;
    }
    if (any(200) == 0) {
      fin = true;
      ::shutdown(tcp.client, SHUT_WR);
    }
  }
  void client_reads(std::size_t most) {
    std::vector<char> part(most);
    const ssize_t n = ::recv(tcp.client, part.data(), part.size(), MSG_DONTWAIT);
    if (n > 0) {
      right = right && expected.compare(received, static_cast<std::size_t>(n), part.data(),
                                        static_cast<std::size_t>(n)) == 0;
      received += static_cast<std::size_t>(n);
    }
    if (n == 0) end_received = true;
    if (n < 0 && errno != EAGAIN) broken = true;
  }
  void leader_works() {
    Connection& c = *leader().connection;
    switch (any(5)) {
      case 0:
        (void)c.read(batch);
        break;
      case 1:
        (void)log.propose_all(batch, 1);
        break;
      case 2:  // a majority has some of the log
        receive(leader(), leader().received + any(log.taken.size() - leader().received + 1));
        committed = std::max(committed, leader().received);
        break;
      case 3:
        c.drop_committed();
        break;
      default:
        (void)c.flush(batch);
    }
  }
  void follower_reads_log() {
    Replica& replica = replicas[any(3)];
    if (&replica != &leader())
      receive(replica, replica.received + any(committed - replica.received + 1));
    // The leader sometimes reports its position, and the replica drops output up to it.
    if (&replica != &leader() && any(3) == 0) {
      replica.connection->put_by_other(leader().connection->put());
    }
  }

  // The new leader's log keeps the first part of the proposed, uncommitted entries, or none.
  void change_leader(bool killed) {
    const std::size_t kept = committed + any(log.taken.size() - committed + 1);
    log.taken.resize(kept);
    committed = kept;
    batch.clear();
    Replica& old = leader();
    if (killed) {
      old.connection.reset();
      old = {};
    } else {
      old.connection->follow();
    }
    lead = (lead + 1 + any(2)) % 3;
    if (killed) {  // it comes back and executes everything again
      old.connection = std::make_unique<Connection>(std::uint16_t{80}, options);
      old.connection->conn = kConn;
      receive(old, any(committed + 1));
    }
    receive(leader(), committed);
    const auto how = leader().connection->serve(host_socket(::dup(tcp.server)), batch);
    if (!killed) old.connection->release_sockets();
    REQUIRE(how != Connection::Adopted::kReset);
    ++changes;
  }

  std::mt19937 random;
  TcpPair tcp;
  ConnectionOptions options;
  FakeLog log;
  Batch batch;
  std::array<Replica, 3> replicas;
  std::size_t lead = 0, committed = 0;
  std::string sent, expected;
  std::size_t received = 0;  // of the expected bytes
  bool right = true, fin = false, end_received = false, broken = false;
  int changes = 0, resets = 0;
};

}  // namespace

TEST_CASE("a client does not notice changes of the leader", "[takeover][CONN-4][CONN-5]") {
  const unsigned first = std::random_device{}();
  for (unsigned round = 0; round < 60; ++round) {
    const unsigned seed = first + round;
    INFO("seed " << seed);
    World w(seed);
    for (int i = 0; i < 3000; ++i) {
      switch (w.any(10)) {
        case 0:
        case 1:
          w.client_sends();
          break;
        case 2:
        case 3:
          w.client_reads(1 + w.any(9000));
          break;
        case 4:
          w.follower_reads_log();
          break;
        case 5:
          if (w.any(20) == 0) w.change_leader(w.any(2) == 0);
          break;
        default:
          w.leader_works();
      }
      REQUIRE(w.right);
    }
    if (!w.fin) ::shutdown(w.tcp.client, SHUT_WR);
    for (int i = 0; i < 200'000 && !w.end_received && !w.broken; ++i) {
      w.leader_works();
      w.client_reads(100'000);
    }
    REQUIRE_FALSE(w.broken);
    REQUIRE(w.end_received);
    REQUIRE(w.right);
    REQUIRE(w.received == w.expected.size());
    w.receive(w.leader(), w.committed);
    REQUIRE(w.leader().input == w.sent);
    REQUIRE(w.resets == 0);
    REQUIRE(w.changes > 0);
  }
}

TEST_CASE_METHOD(LoneReplica,
                 "input that a deposed leader proposed, but did not commit, is read again",
                 "[takeover][CONN-4]") {
  REQUIRE(::send(tcp.client, "once", 4, 0) == 4);
  ::shutdown(tcp.client, SHUT_WR);
  REQUIRE(c.read(batch) == Connection::Read::kDrained);
  c.follow();
  batch.clear();
  REQUIRE(c.serve({}, batch) == Connection::Adopted::kServed);
  REQUIRE(c.read(batch) == Connection::Read::kDrained);
  REQUIRE(log.propose_all(batch, 1).ok());
  c.committed_data(4);
  REQUIRE(c.read(batch) == Connection::Read::kEnded);  // the FIN, whose proposal is not committed
  c.follow();
  batch.clear();
  REQUIRE(c.serve({}, batch) == Connection::Adopted::kServed);
  REQUIRE(c.read(batch) == Connection::Read::kEnded);
  REQUIRE(log.propose_all(batch, 1).ok());
  CHECK(log.types() == "data shutdown");
  CHECK(log.taken[0].data() == "once");
}

// A FIN and a reset both leave the socket closed; only a FIN counts as a byte.
TEST_CASE_METHOD(
    LoneReplica,
    "a client that resets after the server's FIN is reset, and loses no byte of its input",
    "[takeover][CONN-4]") {
  REQUIRE(::send(tcp.client, "in", 2, 0) == 2);
  REQUIRE(c.read(batch) == Connection::Read::kDrained);
  REQUIRE(log.propose_all(batch, 1).ok());
  c.committed_data(2);
  CHECK(c.write(0, std::as_bytes(std::span("out", 3)), batch));
  CHECK(c.shut_down(batch));
  char received[8];
  REQUIRE(::recv(tcp.client, received, sizeof received, MSG_WAITALL) == 3);  // up to the FIN
  REQUIRE(::send(tcp.client, "more", 4, 0) == 4);
  const linger now{1, 0};
  ::setsockopt(tcp.client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(std::exchange(tcp.client, -1));
  c.follow();
  CHECK(c.serve({}, batch) == Connection::Adopted::kReset);
  REQUIRE(log.propose_all(batch, 1).ok());
  CHECK(log.types() == "data reset");
}

// A few bytes that stay in the socket keep their whole kernel buffer, with all bytes that were read
// from it. The kernel then announces a window of 0, and reader and client wait for each other.
TEST_CASE("bytes that stay in the socket do not stop a client that sends much",
          "[takeover][CONN-4]") {
  const std::string text(1 << 20, 'x');
  for (const std::size_t rest : {1, 100, 250}) {
    INFO("a rest of " << rest << " bytes");
    const LoopbackListener listener;
    const int client = listener.connect();
    ClientSocket socket = host_socket(::accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK));
    std::size_t sent = 0, committed = 0, read = 0;
    const auto send = [&](std::size_t most) {
      const ssize_t n = ::send(client, text.data(), most, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      return n > 0;
    };
    REQUIRE(send(100));  // the rest shares a buffer with the bytes after it
    while (send(text.size())) continue;
    int waiting = 0;
    REQUIRE(::ioctl(socket.fd(), SIOCINQ, &waiting) == 0);
    ConnectionOptions options;
    options.first_window = static_cast<std::uint64_t>(waiting) - rest;
    FakeLog log;
    Batch batch;
    Connection c(std::move(socket), 80, options);
    c.conn = ConnId{42};
    // As in the node's events: after a read that drained the socket, the next event is the next
    // edge.
    const int edges = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event edge{EPOLLIN | EPOLLET, {}};
    REQUIRE(::epoll_ctl(edges, EPOLL_CTL_ADD, c.fd(), &edge) == 0);
    bool readable = false;
    const auto step = [&] {
      c.drop_committed();
      if (::epoll_wait(edges, &edge, 1, 0) == 1) readable = true;
      if (readable) {
        const Connection::Read how = c.read(batch);
        readable = how != Connection::Read::kDrained;
        if (how == Connection::Read::kFull && committed == log.taken.size()) c.consumed(read);
      }
      if (!log.propose_all(batch, 1).ok()) return;
      for (; committed < log.taken.size(); ++committed) {
        read += log.taken[committed].data().size();
        c.committed_data(log.taken[committed].data().size());
      }
    };
    const bool all = turned_until([&] { return read == sent; }, step);
    ::close(edges);
    ::close(client);
    INFO("sent " << sent << ", read " << read);
    REQUIRE(all);
  }
}

TEST_CASE("the position of a socket does not depend on bytes that arrive while it is read",
          "[SOCKET-1]") {
  const TcpPair pair;
  std::atomic<bool> over{false};
  // Both directions are always busy: bytes and acknowledgements arrive during each look.
  std::thread other([&] {
    std::array<char, 4096> some{};
    while (!over.load()) {
      (void)!::send(pair.client, some.data(), 100, MSG_DONTWAIT);
      (void)!::recv(pair.client, some.data(), some.size(), MSG_DONTWAIT);
    }
  });
  const ClientSocket socket = host_socket(::dup(pair.server));
  const std::array<std::byte, 100> bytes{};
  const std::span<const std::byte> piece = bytes;
  std::array<char, 4096> room{};
  std::uint64_t put = 0, taken = 0, wrong = 0;
  for (int looks = 0; looks < 50'000; ++looks) {
    put += static_cast<std::uint64_t>(std::max<ssize_t>(socket.send(Pieces(&piece, 1)), 0));
    const auto state = socket.state(false);
    if (!state || state->put != put || state->taken != taken) ++wrong;
    const ssize_t got = ::recv(pair.server, room.data(), room.size(), MSG_DONTWAIT);
    taken += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
  }
  over.store(true);
  other.join();
  REQUIRE(wrong == 0);
}

TEST_CASE("an urgent byte without a committed entry keeps its mark for the next leader",
          "[takeover][CONN-4]") {
  LoneReplica l;
  set_stream_options(l.tcp.server);
  REQUIRE(::send(l.tcp.client, "ab", 2, 0) == 2);
  const auto propose_next = [&l](Connection& c) {
    l.log.taken.clear();
    (void)c.read(l.batch);
    REQUIRE(l.log.propose_all(l.batch, 1).ok());
    REQUIRE(l.log.taken.size() == 1);
    return l.log.taken.front();
  };
  CHECK(propose_next(l.c).data() == "ab");
  l.c.committed_data(2);
  const std::string urgent = GENERATE("!", "cd!");
  const auto size = static_cast<ssize_t>(urgent.size());
  REQUIRE(::send(l.tcp.client, urgent.data(), urgent.size(), MSG_OOB) == size);
  REQUIRE(::send(l.tcp.client, "e", 1, 0) == 1);
  const Taken lost = propose_next(l.c);
  CHECK(lost.data() == urgent);
  CHECK(is_urgent(lost.as<DataBody>()));
  l.c.follow();

  Connection next(std::uint16_t{80}, l.options);
  next.conn = ConnId{42};
  next.committed_data(2);
  REQUIRE(next.serve(host_socket(::dup(l.tcp.server)), l.batch) == Connection::Adopted::kServed);
  const Taken again = propose_next(next);
  CHECK(again.data() == urgent);
  CHECK(is_urgent(again.as<DataBody>()));
  next.committed_data(urgent.size());
  const Taken rest = propose_next(next);
  CHECK(rest.data() == "e");
  CHECK_FALSE(is_urgent(rest.as<DataBody>()));
}

TEST_CASE("urgent output that is not in the socket keeps its mark for the next leader",
          "[takeover][CONN-5]") {
  LoneReplica l;
  const std::string text = "ab!";
  const auto bytes = std::as_bytes(std::span(text));
  const auto written = Pieces(&bytes, 1);
  Connection next(std::uint16_t{80}, l.options);
  next.conn = ConnId{42};
  CHECK(next.write_urgent(0, written, l.batch));
  l.c.follow();
  REQUIRE(next.serve(host_socket(::dup(l.tcp.server)), l.batch) == Connection::Adopted::kServed);
  char received[4] = {};
  REQUIRE(::recv(l.tcp.client, received, sizeof received, 0) == 2);
  CHECK(std::string(received) == "ab");
  REQUIRE(::recv(l.tcp.client, received, sizeof received, MSG_OOB) == 1);
  CHECK(received[0] == '!');
}

TEST_CASE("urgent bytes that arrive during a look lose neither a byte nor the last mark",
          "[takeover][CONN-4]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  LoneReplica l;
  set_stream_options(l.tcp.server);
  std::string sent, received;
  std::set<std::size_t> sent_marks, received_marks;
  std::thread client([&, random = std::mt19937(seed)]() mutable {
    for (int i = 0; i < 3000; ++i) {
      const std::string part(1 + random() % (i % 7 == 0 ? 600 : 5),
                             static_cast<char>('a' + i % 26));
      const bool urgent = random() % 3 == 0;
      sent += part;
      if (urgent) sent_marks.insert(sent.size());
      if (::send(l.tcp.client, part.data(), part.size(), urgent ? MSG_OOB : 0) < 0) return;
    }
    ::shutdown(l.tcp.client, SHUT_WR);
  });
  for (bool ended = false; !ended;) {
    pollfd input{l.tcp.server, POLLIN, 0};
    (void)::poll(&input, 1, 1000);
    const Connection::Read got = l.c.read(l.batch);
    ended = got == Connection::Read::kEnded;
    l.log.taken.clear();
    CHECK(l.log.propose_all(l.batch, 1).ok());
    for (const Taken& entry : l.log.taken) {
      if (entry.type != EntryType::kData) continue;
      received += entry.data();
      if (is_urgent(entry.as<DataBody>())) received_marks.insert(received.size());
      l.c.committed_data(entry.data().size());
      l.c.consumed(received.size());
    }
  }
  client.join();
  CHECK(received == sent);
  for (const std::size_t mark : received_marks) CHECK(sent_marks.count(mark) == 1);
  REQUIRE_FALSE(received_marks.empty());
  CHECK(*received_marks.rbegin() == *sent_marks.rbegin());
}
