// SPDX-License-Identifier: Apache-2.0
// GOAL    The host sends no acknowledgement of a byte from the virtual address before the byte is
//         committed, and a host whose node does not lead sends nothing from it.
// METHOD  A network namespace with two addresses; a real client; the gate filters the packets of
//         the server's address.
// CHECKS  GATE-1, GATE-2; the end of the gate's process; ports that are not Crane's.
#include "proxy/clients/egress_gate.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <thread>

#include "proxy/clients/host_sockets.h"
#include "tests/unit/clients/handshake.h"
#include "tests/unit/clients/namespace.h"

using namespace crane;
using namespace crane::proxy;

namespace {

constexpr const char* kVirtual = "127.0.9.1";  // its packets match the rule, the client's do not

struct World {
  World() : base(event_base_new()) {
    auto opened = EgressGate::open(base, kVirtual);
    INFO((opened.ok() ? "" : opened.error().message()));
    REQUIRE(opened.ok());
    gate = std::move(opened).value();
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    address.sin_family = AF_INET;
    REQUIRE(::inet_pton(AF_INET, kVirtual, &address.sin_addr) == 1);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener, 16) == 0);
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
  }
  ~World() {
    for (const int fd : {client, server, listener}) {
      if (fd >= 0) ::close(fd);
    }
    gate.reset();
    event_base_free(base);
  }
  void turn() const { event_base_loop(base, EVLOOP_NONBLOCK); }
  template <typename Condition>
  bool comes(Condition&& condition) const {
    return turned_until(condition, [this] { turn(); });
  }
  void leads() const {
    gate->add_port(port);
    gate->take_over();
    gate->go_on();
  }
  // Returns whether the client received no byte, no FIN and no reset.
  bool client_receives_nothing() const {
    char byte;
    return ::recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  void begins_to_connect() {
    client = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(client, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0);
    (void)::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address);
    socklen_t size = sizeof own;
    REQUIRE(::getsockname(client, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    peer = of_loopback(ntohs(own.sin_port));
  }
  void connects() {
    begins_to_connect();
    REQUIRE(comes([this] {
      server = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
      return server >= 0;
    }));
    const Handshake asked = handshake_of(server);
    const auto seen = gate->handshake_of(peer, port);
    if (!seen) {  // the port is not Crane's
      shake = asked;
      return;
    }
    shake = *seen;
    CHECK(shake.sent == asked.sent);
    CHECK(shake.received == asked.received);
  }
  int unacknowledged() const {
    int bytes = 0;
    REQUIRE(::ioctl(client, SIOCOUTQ, &bytes) == 0);
    return bytes;
  }
  // Sends `bytes` bytes as the client and waits until the server's kernel has them.
  void sends(std::size_t bytes) {
    const std::string text(bytes, 'x');
    REQUIRE(::send(client, text.data(), bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes));
    sent_count += static_cast<int>(bytes);
    REQUIRE(comes([this] {
      int has = 0;
      return ::ioctl(server, SIOCINQ, &has) == 0 && has == sent_count;
    }));
  }
  // Waits until the acknowledgement of these bytes is held at the gate.
  bool is_held() {
    const std::uint64_t before = gate->counters().held;
    return comes([&] { return gate->counters().held > before; });
  }
  // The kernel sends at once what it may send, so no packet is in flight afterwards.
  void allow(std::uint32_t bytes) {
    gate->allow(peer, port, shake.received + bytes);
    gate->resume_reading();
  }

  event_base* base;
  std::unique_ptr<EgressGate> gate;
  int listener = -1, client = -1, server = -1, sent_count = 0;
  sockaddr_in address{};
  std::uint16_t port = 0;
  VirtualAddress peer{};
  Handshake shake;
};

// Returns what this machine lacks for the test; empty if nothing.
std::string what_is_missing() {
  event_base* const base = event_base_new();
  std::string missing;
  {
    const auto gate = EgressGate::open(base, kVirtual);
    if (gate.ok()) gate.value()->take_down();
    if (!gate.ok() && gate.error().code == Code::kUnsupported) missing = gate.error().message();
  }
  event_base_free(base);
  return missing;
}

void acknowledges_what_is_committed() {
  World w;
  w.leads();
  w.connects();
  w.sends(100);
  REQUIRE(w.is_held());
  CHECK(w.unacknowledged() == 100);  // GATE-1
  w.allow(99);
  w.turn();
  CHECK(w.unacknowledged() == 100);
  w.allow(100);
  CHECK(w.comes([&] { return w.unacknowledged() == 0; }));
  w.sends(50);
  REQUIRE(w.is_held());
  w.gate->forget(w.peer, w.port);
  w.gate->resume_reading();
  CHECK(w.comes([&] { return w.unacknowledged() == 0; }));
  w.gate->take_down();
}

void answers_need_not_pass_the_node() {
  World w;
  w.leads();
  if (!w.gate->filters()) {
    WARN("not tested, it needs BPF");
    return w.gate->take_down();
  }
  w.connects();
  w.sends(10);
  REQUIRE(w.is_held());
  w.allow(10);
  REQUIRE(w.comes([&] { return w.unacknowledged() == 0; }));
  const std::uint64_t before = w.gate->counters().passed;
  char byte;
  REQUIRE(::send(w.server, "x", 1, MSG_NOSIGNAL) == 1);
  CHECK(turned_until([&] { return ::recv(w.client, &byte, 1, MSG_DONTWAIT) == 1; }, [] {}));
  w.turn();
  CHECK(w.gate->counters().passed == before);
  // The next byte of the client is not committed.
  w.sends(1);
  REQUIRE(w.is_held());
  CHECK(w.unacknowledged() == 1);  // GATE-1
  w.gate->take_down();
}

void a_deposed_host_is_silent() {
  World w;
  w.leads();
  w.connects();
  w.sends(10);
  REQUIRE(w.is_held());
  w.gate->close();
  ::close(std::exchange(w.server, -1));  // bytes are unread, so the kernel sends a reset
  CHECK(w.comes([&] { return w.gate->counters().dropped >= 2; }));
  CHECK(w.client_receives_nothing());  // GATE-2
  w.gate->take_down();
}

void a_host_without_a_quorum_is_silent() {
  World w;
  w.leads();
  w.connects();
  w.sends(10);
  REQUIRE(w.is_held());
  w.gate->silence(true);
  CHECK(w.gate->counters().dropped >= 1);
  w.allow(10);
  REQUIRE(::send(w.server, "x", 1, MSG_NOSIGNAL) == 1);
  const std::uint64_t dropped = w.gate->counters().dropped;
  CHECK(w.comes([&] { return w.gate->counters().dropped > dropped; }));
  CHECK(w.client_receives_nothing());  // GATE-2
  w.gate->silence(false);              // the kernel then sends the packet again
  char byte;
  CHECK(w.comes([&] { return ::recv(w.client, &byte, 1, MSG_DONTWAIT) == 1; }));
  CHECK(w.comes([&] { return w.unacknowledged() == 0; }));
  w.gate->take_down();
}

void a_dead_process_is_silent() {
  World w;
  w.leads();
  w.connects();
  w.gate.reset();
  ::close(std::exchange(w.server, -1));
  CHECK(w.client_receives_nothing());
  // The host's next gate is not blocked.
  auto again = EgressGate::open(w.base, kVirtual);
  REQUIRE(again.ok());
  w.gate = std::move(again).value();
  CHECK(w.comes([&] { return w.gate->counters().dropped >= 1; }));
  CHECK(w.client_receives_nothing());
  CHECK(w.gate->counters().passed == 0);
  w.gate->take_down();
}

void resets_wait_for_the_take_over() {
  World w;
  w.gate->add_port(w.port);
  w.gate->take_over();
  ::close(std::exchange(w.listener, -1));
  w.begins_to_connect();
  w.gate->go_on();
  CHECK(w.gate->counters().dropped >= 1);  // the answers that the kernel sent before
  // The client retries.
  CHECK(w.comes([&] {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(w.client, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
           error == ECONNREFUSED;
  }));
  w.gate->take_down();
}

// A packet of the client arrives just before its socket is made.
void missing_socket_sends_no_reset() {
  World w;
  w.leads();
  w.connects();
  (void)leave_silently(host_socket(std::exchange(w.server, -1)));
  REQUIRE(::send(w.client, "x", 1, MSG_NOSIGNAL) == 1);
  CHECK(w.comes([&] { return w.gate->counters().dropped >= 1; }));
  CHECK(w.client_receives_nothing());
  w.gate->take_down();
}

void other_ports_are_free() {
  World w;
  w.gate->add_port(1);
  w.connects();
  w.sends(10);
  CHECK(w.comes([&] { return w.unacknowledged() == 0; }));
  w.gate->take_down();
}

}  // namespace

TEST_CASE("only permitted packets leave the virtual address", "[gate][GATE-1][GATE-2]") {
  std::string missing = "root";
  const bool made = in_namespace([&missing] {
    missing = what_is_missing();
    if (!missing.empty()) return;
    acknowledges_what_is_committed();
    answers_need_not_pass_the_node();
    a_deposed_host_is_silent();
    a_host_without_a_quorum_is_silent();
    a_dead_process_is_silent();
    resets_wait_for_the_take_over();
    missing_socket_sends_no_reset();
    other_ports_are_free();
  });
  if (!made || !missing.empty()) WARN("not tested, it needs: " << missing);
}
