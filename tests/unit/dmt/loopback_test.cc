// SPDX-License-Identifier: Apache-2.0
// GOAL    TCP between two sockets of the server: one end reads what the other end writes.
// METHOD  The test holds the turn and plays both ends.
// CHECKS  LOOPBACK-1, LOOPBACK-2, which listener is reached, limits, the end of either side.
#include "dmt/loopback.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

#include "dmt/connections.h"
#include "dmt/files.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

VirtualAddress at(std::uint16_t port, std::uint8_t last = 1) { return address_in(127, port, last); }

struct Loopback : World {
  Loopback() { hold(); }
  std::uint32_t listen(const VirtualAddress& bound, std::uint16_t bits = 0,
                       std::uint32_t backlog = 16) {
    const std::uint32_t file = create_file(w, main, FileKind::kSocket);
    w.files[file].listener.bound = bound;
    w.files[file].listener.any_address = bits;
    REQUIRE(start_listening(w, file, backlog));
    outputs();
    return file;
  }
  // Returns both ends of a connection.
  std::pair<std::uint32_t, std::uint32_t> pair() {
    const std::uint32_t listener = listen(at(80));
    const std::uint32_t client = create_file(w, main, FileKind::kSocket);
    REQUIRE(connect_loopback(w, main, client, listener, at(40000), at(80)));
    const std::uint32_t served = accept_connection(w, listener);
    REQUIRE(served != 0);
    drop_reference(w, listener);
    outputs();
    return {client, served};
  }
  std::string read(std::uint32_t file, std::size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(read_connection(w, file, reinterpret_cast<std::byte*>(bytes.data()), size, false));
    return bytes;
  }
  std::size_t write(std::uint32_t file, const std::string& bytes) {
    return write_connection(w, file, reinterpret_cast<const std::byte*>(bytes.data()),
                            bytes.size());
  }
  Readiness ready(std::uint32_t file) const { return w.files[file].readiness; }
  std::uint32_t blocks() const { return w.scheduler.blocks_in_use.load(); }
};

}  // namespace

TEST_CASE_METHOD(Loopback, "bytes pass in both directions, and the node gets no output",
                 "[loopback]") {
  const auto [client, served] = pair();
  CHECK(ready(client) == kOut);
  CHECK(ready(served) == kOut);
  CHECK(write(client, "ping") == 4);
  CHECK(ready(served) == (kIn | kOut));
  CHECK(read(served, 3) == "pin");
  CHECK(write(served, std::string(10000, 'x')) == 10000);
  CHECK(read(client, 20000).size() == 10000);
  CHECK(read(served, 10) == "g");
  drop_reference(w, client);
  CHECK(ready(served) == (kIn | kOut | kRdHup));
  CHECK(readable_bytes(w, served) == 0);
  drop_reference(w, served);
  CHECK(blocks() == 0);
  CHECK(outputs().empty());  // LOOPBACK-2
}

TEST_CASE_METHOD(Loopback, "an end accepts as much as the other end has room for", "[loopback]") {
  const auto [client, served] = pair();
  const std::string much(2 * kReceiveWindow, 'y');
  CHECK(write(client, much) == kReceiveWindow);
  CHECK(send_space(w, client) == 0);
  CHECK((ready(client) & kOut) == 0);
  CHECK(read(served, 1000).size() == 1000);
  CHECK(send_space(w, client) == 1000);
  CHECK((ready(client) & kOut) == 0);
  CHECK(read(served, kReceiveWindow / 2).size() == kReceiveWindow / 2);
  CHECK((ready(client) & kOut) != 0);
  // Blocks are scarce: one at a time, and every connection makes progress.
  w.scheduler.blocks_in_use.fetch_add(kBlocksMax / 2);
  CHECK(send_space(w, client) == 0);
  while (!read(served, kReceiveWindow).empty()) continue;
  CHECK(write(client, much) == kBlockBytes);
  w.scheduler.blocks_in_use.fetch_sub(kBlocksMax / 2);
}

TEST_CASE_METHOD(Loopback, "writing to a closed end causes a reset", "[loopback]") {
  const auto [client, served] = pair();
  write(client, "unread");
  drop_reference(w, served);
  CHECK(w.files[client].connection.socket_error == ECONNRESET);
  CHECK(ready(client) == (kIn | kOut | kErr | kHup | kRdHup));
  const auto [other, gone] = pair();
  drop_reference(w, gone);
  CHECK(ready(other) == (kIn | kOut | kRdHup));
  CHECK(write(other, "x") == 1);
  CHECK(w.files[other].connection.socket_error == EPIPE);
}

TEST_CASE_METHOD(Loopback, "a START resets clients, but not the server's own connections",
                 "[loopback]") {
  const auto [client, served] = pair();
  reset_connections(w, Resets::kAll);
  CHECK_FALSE(w.files[client].connection.reset);
  CHECK(write(client, "x") == 1);
  CHECK(read(served, 1) == "x");
}

TEST_CASE_METHOD(Loopback, "connect reaches the listener that matches best", "[loopback]") {
  VirtualAddress any{};
  any.family = AF_INET6;
  any.port = 80;
  const std::uint32_t six = listen(any, kWildcardAddress | kOnlyIpv6);
  CHECK(find_own_listener(w, at(80), 0) == 0);
  any.family = AF_INET;
  const std::uint32_t four = listen(any, kWildcardAddress | kReusesPort);
  CHECK(find_own_listener(w, at(80), 0) == four);
  const std::uint32_t again = listen(any, kWildcardAddress | kReusesPort);
  CHECK(find_own_listener(w, at(80), 0) != find_own_listener(w, at(80), 1));
  const std::uint32_t exact = listen(at(80, 9), kReusesPort);
  CHECK(find_own_listener(w, at(80, 9), 5) == exact);
  CHECK(find_own_listener(w, at(81), 0) == 0);
  VirtualAddress to{};
  to.family = AF_INET6;
  to.port = 80;
  to.ip[15] = 1;
  CHECK(find_own_listener(w, to, 0) == six);
  drop_reference(w, again);
  drop_reference(w, six);
  any.family = AF_INET6;
  any.port = 90;
  const std::uint32_t both = listen(any, kWildcardAddress);
  CHECK(find_own_listener(w, at(90), 0) == both);
}

TEST_CASE_METHOD(Loopback, "ports for listeners rotate in a small range, refused ports are skipped",
                 "[loopback]") {
  const std::uint16_t first = take_listening_port(w, 0);
  CHECK(take_listening_port(w, 0) != first);
  std::set<std::uint16_t> used;
  for (int i = 0; i < 1000; ++i) used.insert(take_listening_port(w, 0));
  CHECK(used.size() == 64);
  used = {take_listening_port(w, 0)};
  for (unsigned refused = 1; refused < 100; ++refused) {
    CHECK(used.insert(take_listening_port(w, refused)).second);
  }
  listen(at(first));
  for (int i = 0; i < 64; ++i) CHECK(take_listening_port(w, 0) != first);
}

TEST_CASE_METHOD(Loopback, "a full queue has no room, a closed listener resets its queue",
                 "[loopback]") {
  const std::uint32_t listener = listen(at(80), 0, 1);
  std::uint32_t clients[2];
  for (std::uint32_t& c : clients) {
    CHECK(has_room(w.files[listener].listener));
    c = create_file(w, main, FileKind::kSocket);
    REQUIRE(connect_loopback(w, main, c, listener, at(take_free_port(w)), at(80)));
  }
  CHECK_FALSE(has_room(w.files[listener].listener));
  CHECK(w.files[clients[0]].connection.local.port != w.files[clients[1]].connection.local.port);
  drop_reference(w, listener);
  CHECK(w.files[clients[0]].connection.reset);
  CHECK(w.files[clients[1]].connection.socket_error == ECONNRESET);
}
