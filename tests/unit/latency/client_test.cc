// SPDX-License-Identifier: Apache-2.0
// GOAL    A stall of the server shows in the latency of every request that was due meanwhile (no
//         coordinated omission), and a wrong answer ends the run.
// METHOD  A server in a thread serves one connection. It stalls for 200 ms after the first request.
//         The load is 1000 requests/s over one connection.
// CHECKS  PACE-1: each of the 100 requests due in the first 100 ms took at least 100 ms. This is a
//         lower bound: a slow machine can only raise it.
// REPLAY  none: nothing is random
#include "eval/latency/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

namespace {

using namespace latency;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStall{200};
const std::string kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class Server {
 public:
  explicit Server(std::string answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&a), size) == 0);
    REQUIRE(listen(listener_, 1) == 0);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &size) == 0);
    port = ntohs(a.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    thread_.join();
    close(listener_);
  }

  std::uint16_t port = 0;

 private:
  void serve() {
    const int fd = accept(listener_, nullptr, nullptr);
    char bytes[4096];
    for (bool first = true; recv(fd, bytes, sizeof bytes, 0) > 0; first = false) {
      // The stall that the load must measure.
      for (const auto then = Clock::now() + kStall; first && Clock::now() < then;) {
        std::this_thread::yield();
      }
      if (send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL) < 0) break;
    }
    close(fd);
  }

  const std::string answer_;
  int listener_ = -1;
  std::thread thread_;
};

Options options_for(const Server& server, double rate) {
  Options o;
  o.port = server.port;
  o.connections = 1;
  o.rate = rate;
  o.seconds = 0.4;
  o.warm_seconds = 0;
  return o;
}

std::uint64_t count_above(const Histogram& h, double us) {
  std::uint64_t sum = 0;
  for (const Histogram::Bin& bin : h.bins()) sum += bin.upper_us >= us ? bin.count : 0;
  return sum;
}

TEST_CASE("A stall of the server shows in every request that was due meanwhile") {
  Server server(kAnswer);
  const auto protocol = protocol_named("http", "/");
  const Result result = Client(options_for(server, 1000), *protocol).run();
  CHECK(result.counts.due == 400);
  CHECK(result.counts.answered == result.latency.count());
  CHECK(count_above(result.latency, 100'000) >= 100);
}

TEST_CASE("A closed loop ends after its requests and counts all that it sent") {
  Server server(kAnswer);
  const auto protocol = protocol_named("http", "/");
  Options options = options_for(server, 0);
  options.seconds = 60;
  options.requests = 50;
  const Result result = Client(options, *protocol).run();
  CHECK(result.counts.due == 50);
  CHECK(result.counts.answered == 50);
  CHECK(count_above(result.latency, 100'000) >= 1);
}

TEST_CASE("A wrong answer ends the run") {
  Server server("HTTP/1.1 500 Internal Server Error\r\n\r\n");
  const auto protocol = protocol_named("http", "/");
  CHECK_THROWS_AS(Client(options_for(server, 1000), *protocol).run(), WrongAnswer);
}

}  // namespace
