// SPDX-License-Identifier: Apache-2.0
// GOAL    A client of a virtual address does not notice that leadership moves to another host.
// METHOD  A real client in a namespace. One host after the other has a proxy that receives the
//         whole log and then leads. Random bytes flow in both directions; leadership moves at
//         random places, also after the client's FIN. In one case an old acknowledgement of the
//         client arrives before the newest one.
// CHECKS  Each byte of the client is committed once and in order. The client gets each byte of the
//         server once and in order, then its FIN. Output that the client acknowledged is dropped.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "proxy/clients/proxy.h"
#include "tests/unit/clients/fake_host.h"
#include "tests/unit/clients/fake_log.h"
#include "tests/unit/clients/loopback_listener.h"
#include "tests/unit/clients/namespace.h"
#include "tests/unit/clients/raw_segment.h"

using namespace crane;
using namespace crane::proxy;

namespace {

constexpr const char* kVirtual = "127.0.9.2";
constexpr int kBuffer = 8192;

struct World {
  explicit World(unsigned seed, bool takes_little = true) : random(seed) {
    address.sin_family = AF_INET;
    REQUIRE(::inet_pton(AF_INET, kVirtual, &address.sin_addr) == 1);
    address.sin_port = htons(7000);
    next_host();
    client = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    // Much of the server's output then waits in its socket.
    if (takes_little) ::setsockopt(client, SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);
    (void)::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address);
    REQUIRE(until([this] { return committed > 1; }));
    REQUIRE(log.taken[1].type == EntryType::kConnect);
    CHECK(log.taken[1].as<ConnectBody>().tcp.mss != 0);
  }
  ~World() {
    ::close(client);
    host.reset();
    event_base_free(base);
  }

  // The next host receives the whole log, then it leads.
  void next_host() {
    if (host) host->lead(false);
    host.reset();
    ProxyOptions options;
    options.connection.send_buffer = 32 * 1024;
    host = std::make_unique<Proxy>(base, options, node);
    const Outcome moves = host->move_clients_of(kVirtual);
    INFO((moves.ok() ? "" : moves.error().message()));
    REQUIRE(moves.ok());
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof kBuffer);
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener, 16) == 0);
    host->add_listener(80, listener);
    host->set_listening(80, true);
    StartBody start{};
    start.resets = Resets::kThoseThatStay;
    CHECK(host->resets() == start.resets);
    const auto bytes = bytes_of(start);
    log.taken.push_back({EntryType::kStart, 0, {bytes.begin(), bytes.end()}, log.next_index++});
    committed = 0;
    input.clear();
    written = 0;
    closed = false;
    receive();
    host->lead(true, ++reign);
  }

  // This host receives the log; its server answers each byte with three.
  void receive() {
    for (; committed < log.taken.size(); ++committed) {
      const Taken& entry = log.taken[committed];
      host->committed(entry.type, Index{entry.index}, entry.body);
      if (entry.type == EntryType::kConnect) conn = entry.index;
      if (entry.type == EntryType::kReset) reset = true;
      if (entry.type == EntryType::kData) answer(entry.data());
      if (entry.type == EntryType::kShutdown && !std::exchange(closed, true)) {
        host->output({OutputType::kClose, {}, conn, 0, 0}, {});
      }
    }
    host->resume_reading();
  }
  void answer(const std::string& data) {
    std::string text;
    for (const char c : data) {
      for (int i = 0; i < 3; ++i) text += byte_at(written + text.size(), c);
    }
    input += data;
    host->output({OutputType::kConsumed, {}, conn, input.size(), 0}, {});
    host->output({OutputType::kBytes, {}, conn, std::exchange(written, written + text.size()), 0},
                 std::as_bytes(std::span(text)));
  }
  static char byte_at(std::size_t at, char c) { return static_cast<char>(c + at % 23); }

  void turn() {
    event_base_loop(base, EVLOOP_NONBLOCK);
    (void)host->propose_inputs(1, log);
    receive();
  }
  // The number of TAKEN entries.
  std::size_t logged_bytes() const {
    return static_cast<std::size_t>(
        std::count_if(log.taken.begin(), log.taken.end(),
                      [](const Taken& entry) { return entry.type == EntryType::kTaken; }));
  }
  template <typename Condition>
  bool until(Condition&& condition) {
    return turned_until(condition, [this] { turn(); });
  }

  void client_sends() {
    std::string part(random() % 2 == 0 ? 1 : 1 + random() % 4000, '.');
    for (char& c : part) c = static_cast<char>('A' + random() % 26);
    const ssize_t n = ::send(client, part.data(), part.size(), MSG_NOSIGNAL);
    if (n > 0) sent += part.substr(0, static_cast<std::size_t>(n));
  }
  void client_acknowledges(std::size_t most) {
    std::string part(most, '.');
    const ssize_t n = ::recv(client, part.data(), most, 0);
    if (n == 0) ended = true;
    if (n < 0 && errno != EAGAIN) broken = true;
    for (ssize_t i = 0; i < n; ++i, ++received_bytes) {
      right = right && part[static_cast<std::size_t>(i)] ==
                           byte_at(received_bytes, sent[received_bytes / 3]);
    }
  }

  std::mt19937 random;
  event_base* base = event_base_new();
  FakeLog log;
  FakeHost node;
  std::unique_ptr<Proxy> host;
  sockaddr_in address{};
  int client = -1;
  std::uint32_t reign = 0;
  std::size_t committed = 0;
  std::uint64_t conn = 0, written = 0;
  std::string sent, input;
  std::size_t received_bytes = 0;
  bool closed = false, reset = false, right = true, ended = false, broken = false;
};

void one_client(unsigned seed, int changes) {
  INFO("seed " << seed);
  World w(seed);
  for (int change = 0; change < changes; ++change) {
    for (auto i = w.random() % 60; i > 0; --i) {
      if (w.random() % 3 == 0) w.client_sends();
      if (w.random() % 3 == 0) w.client_acknowledges(1 + w.random() % 20000);
      w.turn();
    }
    // Some of the output is acknowledged, and the log records that.
    const std::size_t logged_bytes = w.logged_bytes();
    CHECK(w.until([&] {
      if (w.sent.size() - w.received_bytes / 3 < 10'000) w.client_sends();
      if (w.logged_bytes() == logged_bytes) w.client_acknowledges(1 + w.random() % 500);
      return w.logged_bytes() > logged_bytes;
    }));
    w.host->hold_output(w.random() % 2 == 0);
    // Bytes sent from now on never reach the log.
    w.client_sends();
    for (int i = 0; i < 3; ++i) event_base_loop(w.base, EVLOOP_NONBLOCK);
    if (change + 2 == changes) ::shutdown(w.client, SHUT_WR);
    w.next_host();
  }
  CHECK(w.until([&] {
    w.client_acknowledges(100'000);
    return w.ended || w.broken;
  }));
  CHECK_FALSE(w.broken);
  CHECK_FALSE(w.reset);
  CHECK(w.right);
  CHECK(w.input == w.sent);
  CHECK(w.received_bytes == 3 * w.sent.size());
  CHECK(w.until([&] { return w.host->connections() == 0; }));
}

void output_that_is_held(unsigned seed) {
  INFO("seed " << seed);
  World w(seed);
  w.host->hold_output(true);
  w.client_sends();
  REQUIRE(w.until([&] { return w.input == w.sent; }));
  for (int i = 0; i < 20; ++i) w.turn();
  w.client_acknowledges(1);
  CHECK(w.received_bytes == 0);
  w.host->hold_output(false);
  CHECK(w.until([&] {
    w.client_acknowledges(100'000);
    return w.received_bytes == 3 * w.sent.size();
  }));
  CHECK(w.right);
}

// A distant client: an acknowledgement that it sent before the last of the output comes first.
void a_late_answer(unsigned seed) {
  INFO("seed " << seed);
  World w(seed, false);
  CHECK(w.until([&] {
    if (w.sent.size() < 40'000) w.client_sends();
    w.client_acknowledges(100'000);
    return w.sent.size() >= 40'000 && w.received_bytes == 3 * w.sent.size();
  }));
  // The log does not record that the client has all output, and it says that the client is distant.
  std::erase_if(w.log.taken, [](const Taken& entry) { return entry.type == EntryType::kTaken; });
  auto connect = w.log.taken[1].as<ConnectBody>();
  connect.tcp.rtt_us = 1'000'000;
  const auto bytes = bytes_of(connect);
  w.log.taken[1].body.assign(bytes.begin(), bytes.end());
  sockaddr_in own{};
  socklen_t size = sizeof own;
  REQUIRE(::getsockname(w.client, reinterpret_cast<sockaddr*>(&own), &size) == 0);
  Acknowledgement answer{own, w.address,
                         connect.tcp.received + static_cast<std::uint32_t>(w.sent.size()),
                         connect.tcp.sent + 10'000};
  const std::string under_way = " OUTPUT -p tcp -j DROP -m mark ! --mark " +
                                std::to_string(kRawMark) + " --sport " +
                                std::to_string(ntohs(own.sin_port));
  REQUIRE(std::system(("iptables -I" + under_way).c_str()) == 0);
  w.next_host();
  REQUIRE(answer.send_segment());
  for (int i = 0; i < 20'000; ++i) w.turn();
  answer.acknowledges = connect.tcp.sent + static_cast<std::uint32_t>(w.received_bytes);
  REQUIRE(answer.send_segment());
  REQUIRE(std::system(("iptables -D" + under_way).c_str()) == 0);
  w.client_sends();
  CHECK(w.until([&] {
    w.client_acknowledges(100'000);
    return w.received_bytes == 3 * w.sent.size() || w.broken;
  }));
  CHECK(w.right);
  CHECK((w.input == w.sent));
}

}  // namespace

TEST_CASE("a client of a virtual address continues at the next leader's host",
          "[moved][GATE-1][GATE-2]") {
  const unsigned seed = std::random_device{}();
  bool may = false;
  const bool made = in_namespace([&] {
    event_base* const base = event_base_new();
    {
      const auto gate = EgressGate::open(base, kVirtual);
      may = gate.ok();
      if (may) gate.value()->take_down();
    }
    event_base_free(base);
    // While no host has the address, no host answers for it.
    const std::string silence = std::string("iptables -A OUTPUT -p tcp -j DROP -s ") + kVirtual;
    may = may && std::system(silence.c_str()) == 0;
    if (may) output_that_is_held(seed);
    if (may) a_late_answer(seed);
    for (unsigned round = 0; may && round < 6; ++round) one_client(seed + round, 5);
  });
  if (!made || !may) WARN("not tested, it needs root and NFQUEUE");
}
