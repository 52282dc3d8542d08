// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/linear/client.h"

namespace {

using namespace crane::linear;

// A server on its own port, which the test plays.
struct FakeServer {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
  std::vector<int> clients;

  FakeServer() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(listener, 8) == 0);
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port = ntohs(at.sin_port);
  }
  ~FakeServer() {
    for (const int fd : clients) ::close(fd);
    ::close(listener);
  }
  void accept() {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) clients.push_back(fd);
  }
  // Returns what the newest client sent, if anything.
  std::string request() {
    accept();
    char bytes[512];
    const ssize_t n = clients.empty() ? -1 : ::recv(clients.back(), bytes, sizeof bytes, 0);
    return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : "";
  }
  void answer(const std::string& text) {
    REQUIRE(::send(clients.back(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }
};

std::string right_answer(const std::string& request) {
  if (request.find("\r\nSET\r\n") != std::string::npos) return "+OK\r\n";
  if (request.find("\r\nGET\r\n") != std::string::npos) return "$-1\r\n";
  if (request.find("\r\nLRANGE\r\n") != std::string::npos) return "*0\r\n";
  return ":1\r\n";
}

template <typename F>
void until(F&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) REQUIRE(std::chrono::steady_clock::now() < deadline);
}

struct Harness {
  FakeServer server;
  std::string path;
  std::unique_ptr<Clients> clients;

  explicit Harness(unsigned timeout_ms) {
    char name[] = "/tmp/crane-linear-XXXXXX";
    const int fd = ::mkstemp(name);
    REQUIRE(fd >= 0);
    ::close(fd);
    path = name;
    ClientOptions o;
    o.addresses = {"127.0.0.1"};
    o.port = server.port;
    o.clients = 1;
    o.timeout_ms = timeout_ms;
    o.history = path;
    clients = std::make_unique<Clients>(o);
    REQUIRE(clients->open());
  }
  ~Harness() { ::unlink(path.c_str()); }
  std::string next_request() {
    std::string got;
    until([&] {
      clients->turn(1);
      got = server.request();
      return !got.empty();
    });
    return got;
  }
  std::vector<Operation> history() {
    clients.reset();
    std::vector<Operation> all;
    std::ifstream file(path);
    for (std::string line, key; std::getline(file, line);) {
      Model model{};
      REQUIRE(read_line(line, key, model, all.emplace_back()));
    }
    return all;
  }
};

}  // namespace

TEST_CASE("resp: replies of every kind are read, also in pieces", "[linear]") {
  const std::vector<std::string> whole{"+OK\r\n",
                                       "-ERR no\r\n",
                                       ":42\r\n",
                                       "$-1\r\n",
                                       "$3\r\nabc\r\n",
                                       "*0\r\n",
                                       "*2\r\n$1\r\n7\r\n$2\r\n12\r\n"};
  Reply reply;
  std::size_t used = 0;
  for (const std::string& text : whole) {
    for (std::size_t n = 0; n < text.size(); ++n) {
      CHECK(parse_reply(text.substr(0, n), reply, used) == Parsed::kMore);
    }
    CHECK(parse_reply(text + "+", reply, used) == Parsed::kReply);
    CHECK(used == text.size());
  }
  CHECK(reply.items == std::vector<std::string>{"7", "12"});
  for (const char* bad : {"hello\r\n", "\r\n", "$x\r\n", ":1x\r\n", "$1\r\nabcd", "*1\r\n:1\r\n",
                          "*-1\r\n", "$99999999999\r\n"}) {
    INFO(bad);
    CHECK(parse_reply(bad, reply, used) == Parsed::kBad);
  }
}

TEST_CASE("history: written lines are read back, and other text is refused", "[linear]") {
  for (const char* line : {"17 r3.12 set 4711 1000 1850 ok", "18 c0.2 incr 0 1010 1700 5",
                           "19 l1.0 range 0 1020 2000 [8,9]", "19 l1.0 range 0 1020 2000 []",
                           "20 r3.12 get 0 1030 - ?1730", "20 r3.12 get 0 1030 1031 nil",
                           "21 l1.0 push 5 1030 - error"}) {
    std::string key, again;
    Model model{};
    Operation o;
    INFO(line);
    REQUIRE(read_line(line, key, model, o));
    write_line(again, key, o);
    CHECK(again == std::string(line) + "\n");
  }
  for (const char* line :
       {"", "17 r3 set 1 10 9 ok", "17 r3 set 1 10 20 5", "17 x3 set 1 10 20 ok",
        "17 r3 incr 1 10 20 5", "17 r3 get 0 10 20", "17 r3 get 0 10 20 5 6",
        "17 l3 range 0 10 20 [1,]", "17 r3 get 0 10 - 5", "17 r3 get 0 x 20 5"}) {
    std::string key;
    Model model{};
    Operation o;
    INFO(line);
    CHECK_FALSE(read_line(line, key, model, o));
  }
}

TEST_CASE("workload: keys are replaced, no value is used twice, and all are read at the end",
          "[linear]") {
  Workload w({7, "p", 2, 30, 10});
  std::map<std::string, int> used;
  std::set<std::int64_t> values;
  for (int i = 0; i < 3000; ++i) {
    const Request r = w.next();
    ++used[r.key];
    if (r.operation.argument != 0) CHECK(values.insert(r.operation.argument).second);
  }
  CHECK(used.size() > 100);
  for (const auto& [key, count] : used) CHECK(count <= (key[0] == 'l' ? 10 : 30));
  const auto closing = w.closing_reads();
  CHECK(closing.size() == used.size());
  for (const Request& r : closing) CHECK(used.count(r.key) == 1);
}

TEST_CASE("client: without an answer the operation stays open and another client continues",
          "[linear]") {
  Harness t(30);
  t.next_request();  // never answered
  const std::string second = t.next_request();
  t.server.answer(right_answer(second));
  t.next_request();  // the connection breaks
  ::close(t.server.clients.back());
  t.server.clients.pop_back();
  const std::string fourth = t.next_request();
  t.server.answer(right_answer(fourth));
  until([&] {
    t.clients->turn(1);
    return t.clients->counts().answered == 2;
  });
  CHECK(t.clients->counts().open == 2);
  CHECK(t.clients->counts().odd == 0);
  const auto h = t.history();
  REQUIRE(h.size() == 4);
  CHECK(h[0].open());
  CHECK(h[0].given_up_ns >= h[0].called_ns + 30'000'000);
  CHECK_FALSE(h[1].open());
  CHECK(h[2].open());
  CHECK_FALSE(h[3].open());
  CHECK(h[1].client != h[0].client);
  CHECK(h[2].client == h[1].client);  // its connection lasted until it broke
  CHECK(h[3].client != h[2].client);
  for (std::size_t i = 1; i < h.size(); ++i) CHECK(h[i].called_ns > h[i - 1].called_ns);
}

TEST_CASE("client: an error is an open operation, an answer of another type is odd", "[linear]") {
  Harness t(10000);
  t.next_request();
  t.server.answer("-ERR not now\r\n");
  t.next_request();
  t.server.answer("*1\r\n$3\r\nabc\r\n");
  t.next_request();
  CHECK(t.clients->counts().refused == 1);
  CHECK(t.clients->counts().odd == 1);
  CHECK(t.clients->counts().answered == 0);
  const auto h = t.history();
  REQUIRE(h.size() == 2);
  CHECK((h[0].open() && h[0].refused && h[1].open() && !h[1].refused));
}

TEST_CASE("client: at the end every key is read, twice if necessary", "[linear]") {
  Harness t(10000);
  t.server.answer(right_answer(t.next_request()));
  t.next_request();
  t.clients->finish();
  ::close(t.server.clients.back());  // during the last write
  t.server.clients.pop_back();
  std::size_t served = 0;
  bool broke = false;
  until([&] {
    t.clients->turn(1);
    const std::string got = t.server.request();
    if (got.empty()) return t.clients->finished();
    CHECK((got.find("\r\nGET\r\n") != std::string::npos ||
           got.find("\r\nLRANGE\r\n") != std::string::npos));
    if (++served == 3 && !broke) {
      broke = true;
      ::close(t.server.clients.back());
      t.server.clients.pop_back();
    } else {
      t.server.answer(right_answer(got));
    }
    return t.clients->finished();
  });
  CHECK(served == 3 * 4 + 1);  // 4 keys of each model, one requested twice
}
