// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "proxy/clients/host_sockets.h"
#include "tests/unit/clients/fake_log.h"

using namespace crane;
using namespace crane::proxy;

namespace {

struct Pair {
  explicit Pair(ConnectionOptions o = {}) : options(o) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client = ends[1];
    connection = std::make_unique<Connection>(host_socket(ends[0]), std::uint16_t{80}, options);
    connection->conn = ConnId{42};
  }
  ~Pair() { hang_up(); }
  void hang_up() {
    if (client >= 0) ::close(client);
    client = -1;
  }
  void send_text(const std::string& text) {
    REQUIRE(::send(client, text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }
  // Returns all that the client can read now, followed by "<end>" at the end of the stream.
  std::string receive(std::size_t most = 1 << 30) {
    std::string all;
    std::vector<char> part(1 << 16);
    while (all.size() < most) {
      const ssize_t got = ::recv(client, part.data(), std::min(part.size(), most - all.size()), 0);
      if (got == 0) return all + "<end>";
      if (got < 0) return all + (errno == EAGAIN ? "" : "<error>");
      all.append(part.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  bool write(const std::string& text) {
    const std::uint64_t at = written;
    written += text.size();
    return connection->write(at, std::as_bytes(std::span(text)), batch);
  }
  void propose() { REQUIRE(log.propose_all(batch, 1).ok()); }
  // Commits all proposed entries.
  void commit() {
    propose();
    for (; committed < log.taken.size(); ++committed) {
      const Taken& entry = log.taken[committed];
      if (entry.type == EntryType::kData) connection->committed_data(entry.data().size());
      if (entry.type == EntryType::kShutdown) connection->committed_shutdown();
      if (entry.type == EntryType::kReset) connection->committed_reset();
    }
  }

  FakeLog log;
  ConnectionOptions options;
  Batch batch;
  int client = -1;
  std::uint64_t written = 0;
  std::size_t committed = 0;  // of log.taken
  std::unique_ptr<Connection> connection;
};

}  // namespace

TEST_CASE("bytes of the client become DATA, its FIN becomes one SHUTDOWN", "[connection]") {
  Pair p;
  p.send_text("GET /");
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kUnderWay);
  p.commit();
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  ::shutdown(p.client, SHUT_WR);
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kEnded);
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kEnded);
  p.propose();
  REQUIRE(p.log.types() == "data shutdown");
  REQUIRE(p.log.taken[0].data() == "GET /");
  // The server can still answer.
  REQUIRE(p.write("200"));
  REQUIRE(p.connection->close(false, p.batch));
  REQUIRE(p.connection->finished());
  REQUIRE(p.receive() == "200<end>");
}

TEST_CASE("N1: no more is read than the receive window allows", "[connection]") {
  Pair p({1 << 20, 10, 10});
  p.send_text("0123456789abcdef");
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kFull);
  REQUIRE_FALSE(p.connection->window_open());
  p.commit();
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kFull);
  p.connection->consumed(4);
  REQUIRE(p.connection->window_open());
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kFull);
  p.commit();
  p.connection->consumed(1'000'000);  // no more is believed than was proposed
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  p.propose();
  REQUIRE(p.log.taken[0].data() == "0123456789");
  REQUIRE(p.log.taken[1].data() == "abcd");
  REQUIRE(p.log.taken[2].data() == "ef");
}

TEST_CASE("before the server's first read a client gets only the small window", "[connection]") {
  Pair p({1 << 20, 10, 4});
  p.send_text("0123456789abcdef");
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kFull);
  p.commit();
  p.connection->consumed(1);
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kFull);
  p.propose();
  REQUIRE(p.log.taken[0].data() == "0123");
  REQUIRE(p.log.taken[1].data() == "456789a");  // ten bytes unread: the whole window
}

TEST_CASE("a client that does not read gets the rest later, then the FIN", "[connection]") {
  Pair p;
  const std::string big(900'000, 'x');
  REQUIRE_FALSE(p.write(big));
  REQUIRE_FALSE(p.write("tail"));
  REQUIRE(p.connection->queued() > 0);
  REQUIRE_FALSE(p.connection->close(false, p.batch));
  REQUIRE_FALSE(p.connection->finished());
  std::string received;
  while (!p.connection->finished()) {
    received += p.receive();
    (void)p.connection->flush(p.batch);
  }
  received += p.receive();
  REQUIRE(received == big + "tail<end>");
}

TEST_CASE("D15: WINDOW is due once S/2 is sent and S/4 or all of it was taken", "[connection]") {
  Pair p({1000, 256 * 1024});
  REQUIRE(p.write(std::string(500, 'a')));
  REQUIRE(p.batch.empty());  // only half of S is sent
  REQUIRE(p.write(std::string(100, 'b')));
  p.propose();
  REQUIRE(p.log.types() == "window");
  REQUIRE(p.log.taken[0].as<WindowBody>().conn == ConnId{42});
  REQUIRE(p.log.taken[0].as<WindowBody>().total == 600);
  REQUIRE(p.write(std::string(300, 'c')));
  REQUIRE(p.batch.empty());  // counted from the last WINDOW
  REQUIRE(p.write(std::string(201, 'd')));
  p.propose();
  REQUIRE(p.log.taken[1].as<WindowBody>().total == 1101);
}

TEST_CASE("D15: a blocked server learns that a slow client has read", "[connection]") {
  constexpr std::uint64_t kSend = 1 << 20;
  Pair p({kSend, 256 * 1024});
  std::uint64_t sent = 0, taken = 0, windows = 0;
  // The server writes whenever S allows; the client reads a little each time.
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t reported =
        p.log.taken.empty() ? 0 : p.log.taken.back().as<WindowBody>().total;
    REQUIRE(reported <= taken + kSend);
    if (sent - reported < kSend) {
      const std::uint64_t n = std::min<std::uint64_t>(kSend - (sent - reported), 65536);
      (void)p.write(std::string(n, 'x'));
      sent += n;
    }
    REQUIRE(p.connection->queued() <= kSend);
    taken += p.receive(40'000).size();
    (void)p.connection->flush(p.batch);
    p.propose();
    windows = p.log.taken.size();
  }
  REQUIRE(taken > 20 * kSend);  // the stream never got stuck
  REQUIRE(windows < 2 * taken / (kSend / 4));
}

TEST_CASE("N3: a broken connection is reported once, then ignored", "[connection]") {
  Pair p;
  p.hang_up();
  REQUIRE(p.write("lost"));  // EPIPE
  REQUIRE(p.connection->fd() < 0);
  REQUIRE(p.write("more"));
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kEnded);
  p.connection->reset(p.batch, true);
  p.propose();
  REQUIRE(p.log.types() == "reset");
  REQUIRE_FALSE(p.connection->finished());  // not before the server has closed it, too
  REQUIRE(p.connection->close(false, p.batch));
  REQUIRE(p.connection->finished());
}

TEST_CASE("half close: the server's FIN follows its bytes, and input continues", "[connection]") {
  Pair p;
  REQUIRE(p.write("bye"));
  REQUIRE(p.connection->shut_down(p.batch));
  REQUIRE(p.receive() == "bye<end>");
  p.send_text("still here");
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  p.propose();
  REQUIRE(p.log.taken[0].data() == "still here");
  REQUIRE_FALSE(p.connection->finished());
}

TEST_CASE("pieces that a client does not take at once are neither lost nor sent twice",
          "[connection][CONN-5]") {
  Pair p;
  const std::string pieces[] = {std::string(3, 'a'), std::string(400'000, 'b'), "",
                                std::string(400'000, 'c'), "d"};
  std::vector<std::span<const std::byte>> parts;
  std::string all;
  for (const std::string& piece : pieces) {
    parts.push_back(std::as_bytes(std::span(piece)));
    all += piece;
  }
  CHECK_FALSE(p.connection->write(0, parts, p.batch));
  CHECK(p.connection->queued() > 0);
  CHECK(p.connection->put() + p.connection->queued() == all.size());
  std::string received;
  while (received.size() < all.size()) {
    received += p.receive();
    (void)p.connection->flush(p.batch);
  }
  CHECK(received == all);
}

TEST_CASE("the last bytes and the FIN after them arrive in order", "[connection]") {
  Pair p;
  const std::string text = "bye";
  const auto bytes = std::as_bytes(std::span(text));
  const bool closes = GENERATE(true, false);
  CHECK(p.connection->write(0, Pieces(&bytes, 1), p.batch, true));
  CHECK((closes ? p.connection->close(false, p.batch) : p.connection->shut_down(p.batch)));
  CHECK(p.receive() == "bye<end>");
}

namespace {

// The calls of the real socket, counted.
class CountedCalls final : public SocketCalls {
 public:
  Peeked peek(int fd, std::size_t skip, std::span<std::byte> into) noexcept override {
    ++peeks;
    return host_sockets().peek(fd, skip, into);
  }
  void drop(int fd, std::uint64_t bytes) noexcept override {
    ++drops;
    host_sockets().drop(fd, bytes);
  }
  bool holds_any(int fd) noexcept override { return host_sockets().holds_any(fd); }
  std::uint64_t unacknowledged(int fd) noexcept override {
    return host_sockets().unacknowledged(fd);
  }
  ssize_t send(int fd, Pieces pieces, bool more) noexcept override {
    return host_sockets().send(fd, pieces, more);
  }
  ssize_t send_urgent(int fd, std::byte byte) noexcept override {
    return host_sockets().send_urgent(fd, byte);
  }
  void end_output(int fd) noexcept override { host_sockets().end_output(fd); }
  void reset(int fd) noexcept override { host_sockets().reset(fd); }
  void close(int fd) noexcept override { host_sockets().close(fd); }
  std::optional<SocketState> state(int fd, bool connected_here) noexcept override {
    return host_sockets().state(fd, connected_here);
  }
  SocketId id(int fd) noexcept override { return host_sockets().id(fd); }
  std::uint16_t local_port(int fd) noexcept override { return host_sockets().local_port(fd); }
  int peeks = 0, drops = 0;
};

}  // namespace

TEST_CASE("one peek after the first request shows that no bytes follow", "[connection][CONN-4]") {
  CountedCalls calls;
  Pair p;
  p.connection = std::make_unique<Connection>(
      ClientSocket(p.connection->surrender().release(), calls), std::uint16_t{80}, p.options);
  p.connection->conn = ConnId{42};
  p.send_text("GET");
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  CHECK(calls.drops == 0);  // not committed yet
  p.commit();
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  CHECK(calls.peeks == 2);
  CHECK(calls.drops == 1);
  p.send_text("GET");
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  p.commit();
  p.send_text("GET");
  REQUIRE(p.connection->read(p.batch) == Connection::Read::kDrained);
  CHECK(calls.peeks == 4);
  CHECK(calls.drops == 1);  // the second one stays in the socket and is skipped
}
