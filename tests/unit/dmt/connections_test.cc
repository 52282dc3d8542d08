// SPDX-License-Identifier: Apache-2.0
// GOAL    A server's view of a client is a function of the admitted entries and of the server's own
//         calls.
// METHOD  The test holds the turn, admits entries one by one and plays the server.
// CHECKS  accept, bytes, EOF, reset, send window, close, the records for the node.
#include "dmt/connections.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "dmt/files.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

// A world with a listener on port 80; the test holds the turn.
struct Served : World {
  explicit Served(std::uint32_t backlog = 16) {
    hold();
    listener = create_file(w, main, FileKind::kSocket);
    w.files[listener].listener.bound.port = 80;
    REQUIRE(start_listening(w, listener, backlog));
    outputs();
  }
  // Returns a client that is connected and accepted.
  std::uint32_t client(std::uint64_t* conn = nullptr) {
    const std::uint64_t index = connect(80);
    if (conn != nullptr) *conn = index;
    admit();
    const std::uint32_t file = accept_connection(w, listener);
    REQUIRE(file != 0);
    return file;
  }
  std::string read(std::uint32_t file, std::size_t size, bool peek = false) {
    std::string result(size, '\0');
    result.resize(
        read_connection(w, file, reinterpret_cast<std::byte*>(result.data()), size, peek));
    return result;
  }
  std::size_t write(std::uint32_t file, const std::string& bytes) {
    return write_connection(w, file, reinterpret_cast<const std::byte*>(bytes.data()),
                            bytes.size());
  }
  Readiness ready(std::uint32_t file) const { return w.files[file].readiness; }

  std::uint32_t listener;
};

}  // namespace

TEST_CASE("listen is reported to the node, and a port in use is refused", "[connections]") {
  World world;
  world.hold();
  const std::uint32_t a = create_file(world.w, world.main, FileKind::kSocket);
  world.w.files[a].listener.bound.port = 8080;
  REQUIRE(start_listening(world.w, a, 5));
  auto out = world.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kListen);
  CHECK(out[0].header.conn == 8080);
  CHECK(out[0].header.argument == 5);
  const std::uint32_t b = create_file(world.w, world.main, FileKind::kSocket);
  world.w.files[b].listener.bound.port = 8080;
  CHECK_FALSE(start_listening(world.w, b, 5));
  drop_reference(world.w, a);
  out = world.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kUnlisten);
  CHECK(start_listening(world.w, b, 5));
}

TEST_CASE("each address on which a port is listened for is reported to the node once",
          "[connections]") {
  World world;
  world.hold();
  constexpr std::uint16_t kPort = 8080;
  const auto listener = [&world](std::uint8_t last, std::uint16_t bits) {
    const std::uint32_t file = create_file(world.w, world.main, FileKind::kSocket);
    world.w.files[file].listener.bound = {AF_INET, kPort, 0, {127, 0, 0, last}};
    world.w.files[file].listener.any_address = bits;
    REQUIRE(start_listening(world.w, file, 5));
    return file;
  };
  const auto place = [](const auto& record) {
    ListenPlace listen_place{};
    REQUIRE(record.bytes.size() == sizeof listen_place);
    std::memcpy(&listen_place, record.bytes.data(), sizeof listen_place);
    return listen_place;
  };
  const std::uint32_t a = listener(1, kReusesPort), b = listener(1, kReusesPort);
  const std::uint32_t c = listener(2, kLoopbackDevice);
  auto out = world.outputs();
  REQUIRE(out.size() == 2);  // a and b share an address
  CHECK(out[0].header.conn == kPort);
  CHECK(place(out[0]).bound.ip[3] == 1);
  CHECK_FALSE(place(out[0]).loopback_device);
  CHECK(place(out[1]).bound.ip[3] == 2);
  CHECK(place(out[1]).loopback_device);
  drop_reference(world.w, a);
  CHECK(world.outputs().empty());
  drop_reference(world.w, c);
  drop_reference(world.w, b);
  out = world.outputs();
  REQUIRE(out.size() == 2);
  CHECK(out[0].header.type == OutputType::kUnlisten);
  CHECK(place(out[0]).bound.ip[3] == 2);
  CHECK(place(out[1]).bound.ip[3] == 1);
}

TEST_CASE_METHOD(Served, "the port of a nonlocal address is requested even before a client",
                 "[connections]") {
  const std::uint32_t file = create_file(w, main, FileKind::kSocket);
  ListenerState& l = w.files[file].listener;
  l.bound.port = 8080;
  CHECK(ask_for_port(w, main, file) == 0);
  const std::uint64_t question = ask_for_port(w, main, file, true);
  REQUIRE(question != 0);
  const PortBody body{question, file, EADDRNOTAVAIL};
  push(EntryType::kPort, kPlenty, &body, sizeof body);
  admit();
  CHECK(l.question == 0);
  CHECK(l.answer == EADDRNOTAVAIL);
}

TEST_CASE_METHOD(Served, "bind requests a port once clients have come, and PORT wakes that bind",
                 "[connections]") {
  const std::uint32_t file = create_file(w, main, FileKind::kSocket);
  ListenerState& l = w.files[file].listener;
  l.bound.port = 8080;
  CHECK(ask_for_port(w, main, file) == 0);  // before the first client a port in use ends the group
  client();
  l.bound.port = 80;
  CHECK(ask_for_port(w, main, file) == 0);  // the server has this port
  l.bound.port = 8080;
  outputs();
  const std::uint64_t question = ask_for_port(w, main, file);
  REQUIRE(question != 0);
  const auto out = outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kPortWanted);
  CHECK(out[0].header.conn == 8080);
  CHECK(out[0].header.argument == question);

  const auto answer = [&](std::uint64_t number, std::uint32_t of, std::int32_t error) {
    const PortBody body{number, of, error};
    push(EntryType::kPort, kPlenty, &body, sizeof body);
    admit();
  };
  answer(question + 1, file, EACCES);       // for another request
  answer(question, listener, EACCES);       // for another socket
  answer(question, kFilesMax + 1, EACCES);  // for no socket
  CHECK(l.question == question);
  answer(question, file, EADDRINUSE);
  CHECK(l.question == 0);
  CHECK(l.answer == EADDRINUSE);
  answer(question, file, 0);  // from a second leader
  CHECK(l.answer == EADDRINUSE);
}

TEST_CASE("SO_REUSEPORT: several listeners share a port, the log decides which gets a client",
          "[connections]") {
  World world;
  world.hold();
  std::uint32_t listeners[2];
  for (std::uint32_t& l : listeners) {
    l = create_file(world.w, world.main, FileKind::kSocket);
    world.w.files[l].listener.bound.port = 80;
    world.w.files[l].listener.any_address = kWildcardAddress | kReusesPort;
    REQUIRE(may_listen(world.w, l));
    REQUIRE(start_listening(world.w, l, 5));
  }
  CHECK(world.outputs().size() == 1);  // outside there is one port
  for (int i = 0; i < 4; ++i) world.connect(80);
  world.admit();
  for (const std::uint32_t l : listeners) CHECK(world.w.files[l].listener.queued == 2);
  const std::uint32_t other = create_file(world.w, world.main, FileKind::kSocket);
  world.w.files[other].listener.bound.port = 80;
  CHECK_FALSE(may_listen(world.w, other));
}

TEST_CASE("a client goes to a listener of its own address family if there is one",
          "[connections]") {
  World world;
  world.hold();
  std::uint32_t listeners[2];
  for (int i = 0; i < 2; ++i) {
    listeners[i] = create_file(world.w, world.main, FileKind::kSocket);
    VirtualAddress& bound = world.w.files[listeners[i]].listener.bound;
    bound.port = 80;
    bound.family = i == 0 ? AF_INET : AF_INET6;
    bound.ip[0] = 10;  // neither is the address that the client connected to
    REQUIRE(start_listening(world.w, listeners[i], 5));
  }
  for (int i = 0; i < 4; ++i) {
    ConnectBody body{};
    body.port = body.local.port = 80;
    body.local.family = body.peer.family = AF_INET;
    world.push(EntryType::kConnect, kPlenty, &body, sizeof body);
  }
  world.admit();
  CHECK(world.w.files[listeners[0]].listener.queued == 4);
  CHECK(world.w.files[listeners[1]].listener.queued == 0);
}

TEST_CASE("connections are accepted in log order", "[connections]") {
  Served s;
  CHECK(accept_connection(s.w, s.listener) == 0);
  CHECK(s.ready(s.listener) == 0);
  const std::uint64_t first = s.connect(80);
  const std::uint64_t second = s.connect(80);
  s.admit();
  CHECK(s.ready(s.listener) == kIn);
  const std::uint32_t a = accept_connection(s.w, s.listener);
  CHECK(s.ready(s.listener) == kIn);
  const std::uint32_t b = accept_connection(s.w, s.listener);
  CHECK(s.ready(s.listener) == 0);
  CHECK(value(s.w.files[a].connection.conn) == first);
  CHECK(value(s.w.files[b].connection.conn) == second);
  CHECK(s.w.files[a].connection.peer.port == 40000);
  CHECK(s.ready(a) == kOut);
}

TEST_CASE("without a listener or with a full backlog the client is refused", "[connections]") {
  Served s(2);
  const std::uint64_t stray = s.connect(81);
  s.admit();
  auto out = s.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kRefused);
  CHECK(out[0].header.conn == stray);
  for (int i = 0; i < 3; ++i) s.connect(80);  // Linux queues backlog + 1
  s.admit();
  CHECK(s.outputs().empty());
  const std::uint64_t late = s.connect(80);
  s.admit();
  out = s.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.conn == late);
}

TEST_CASE("bytes are read as they were written, across block borders", "[connections]") {
  Served s;
  std::uint64_t conn = 0;
  const std::uint32_t file = s.client(&conn);
  std::string all;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::string piece(1 + i * 677 % 9000, static_cast<char>('a' + i % 26));
    all += piece;
    s.data(conn, piece);
  }
  s.admit();
  CHECK(readable_bytes(s.w, file) == all.size());
  CHECK((s.ready(file) & kIn) != 0);
  CHECK(s.read(file, 5000, true) == all.substr(0, 5000));
  CHECK(readable_bytes(s.w, file) == all.size());
  std::string got;
  for (std::size_t n = 1; got.size() < all.size(); n = n * 3 % 7919 + 1) got += s.read(file, n);
  CHECK(got == all);
  CHECK(readable_bytes(s.w, file) == 0);
  CHECK(s.ready(file) == kOut);
  CHECK(s.w.files[file].connection.head_block == 0);
}

TEST_CASE("blocks are reused", "[connections]") {
  Served s;
  std::uint64_t conn = 0;
  const std::uint32_t file = s.client(&conn);
  for (int round = 0; round < 50; ++round) {
    s.data(conn, std::string(60'000, 'x'));
    s.admit();
    CHECK(s.read(file, 100'000).size() == 60'000);
  }
  CHECK(s.w.scheduler.blocks_used <= 60'000 / kBlockBytes + 2);
}

TEST_CASE("the node learns how far the server has read", "[connections]") {
  Served s;
  std::uint64_t conn = 0;
  const std::uint32_t file = s.client(&conn);
  for (int i = 0; i < 2; ++i) s.data(conn, std::string(40'000, 'x'));
  s.admit();
  CHECK(s.w.scheduler.blocks_in_use.load() == 80'000 / kBlockBytes + 1);
  CHECK(s.read(file, 1).size() == 1);  // the first read is reported at once: it opens the window
  const auto first = s.outputs();
  REQUIRE(first.size() == 1);
  CHECK(first[0].header.type == OutputType::kConsumed);
  CHECK(first[0].header.argument == 1);
  CHECK(s.read(file, 40'000).size() == 40'000);
  CHECK(s.outputs().empty());  // later reads are reported in steps
  CHECK(s.read(file, 40'000).size() == 39'999);
  const auto out = s.outputs();
  REQUIRE(out.size() == 1);
  CHECK(out[0].header.type == OutputType::kConsumed);
  CHECK(out[0].header.conn == conn);
  CHECK(out[0].header.argument == 80'000);
  CHECK(s.w.scheduler.blocks_in_use.load() == 0);
}

TEST_CASE("FIN: earlier bytes are read first, then EOF", "[connections]") {
  Served s;
  std::uint64_t conn = 0;
  const std::uint32_t file = s.client(&conn);
  s.data(conn, "last words");
  s.shutdown(conn);
  s.data(conn, "after FIN");  // sent by a faulty node; never seen
  s.admit();
  CHECK(s.ready(file) == (kIn | kOut | kRdHup));
  CHECK(s.read(file, 100) == "last words");
  CHECK(readable_bytes(s.w, file) == 0);
  CHECK(s.ready(file) == (kIn | kOut | kRdHup));
  shutdown_write(s.w, file);
  CHECK((s.ready(file) & kHup) != 0);
  const auto out = s.outputs();
  REQUIRE(out.size() == 2);
  CHECK(out[0].header.type == OutputType::kConsumed);
  CHECK(out[1].header.type == OutputType::kShutdown);
}

TEST_CASE("reset: a broken pipe after FIN, otherwise connection reset by peer", "[connections]") {
  Served s;
  std::uint64_t a_conn = 0;
  std::uint64_t b_conn = 0;
  const std::uint32_t a = s.client(&a_conn);
  const std::uint32_t b = s.client(&b_conn);
  s.reset(a_conn);
  s.shutdown(b_conn);
  s.reset(b_conn);
  s.admit();
  CHECK(s.w.files[a].connection.socket_error == ECONNRESET);
  CHECK(s.w.files[b].connection.socket_error == EPIPE);
  CHECK(s.ready(a) == (kIn | kOut | kErr | kHup | kRdHup));
}

TEST_CASE("only WINDOW entries change the send space", "[connections]") {
  Served s;  // S = 3000
  std::uint64_t conn = 0;
  const std::uint32_t file = s.client(&conn);
  CHECK(send_space(s.w, file) == 3000);
  CHECK(s.write(file, std::string(2001, 'x')) == 2001);
  CHECK(s.ready(file) == 0);  // less than a third is free
  CHECK(s.write(file, std::string(2001, 'y')) == 999);
  CHECK(s.write(file, "z") == 0);
  const auto out = s.outputs();
  REQUIRE(out.size() == 2);
  CHECK(out[0].header.type == OutputType::kBytes);
  CHECK(out[0].header.argument == 0);  // offset in the connection's output
  CHECK(out[0].bytes == std::string(2001, 'x'));
  CHECK(out[1].header.argument == 2001);
  CHECK(out[1].bytes == std::string(999, 'y'));
  s.window(conn, 999);
  s.admit();
  CHECK(send_space(s.w, file) == 999);
  CHECK(s.ready(file) == 0);
  s.window(conn, 1000);
  s.admit();
  CHECK(s.ready(file) == kOut);
  s.window(conn, 500);   // a window never moves back
  s.window(conn, 9999);  // a window never exceeds the bytes sent
  s.admit();
  CHECK(send_space(s.w, file) == 1000);
}

TEST_CASE("a large write is split into records", "[connections]") {
  World world({.send_buffer = 1 << 20});
  world.hold();
  const std::uint32_t listener = create_file(world.w, world.main, FileKind::kSocket);
  world.w.files[listener].listener.bound.port = 80;
  REQUIRE(start_listening(world.w, listener, 4));
  world.connect(80);
  world.admit();
  world.outputs();
  const std::uint32_t file = accept_connection(world.w, listener);
  const std::string bytes(150'000, 'q');
  CHECK(write_connection(world.w, file, reinterpret_cast<const std::byte*>(bytes.data()),
                         bytes.size()) == bytes.size());
  const auto out = world.outputs();
  REQUIRE(out.size() == 3);
  CHECK(out[0].bytes.size() == kOutputBytesMax);
  CHECK(out[2].header.argument == 2 * kOutputBytesMax);
}

TEST_CASE("bytes written directly into the ring become one ordinary record or none",
          "[connections]") {
  World world({.send_buffer = 100'000});
  world.hold();
  const std::uint32_t listener = create_file(world.w, world.main, FileKind::kSocket);
  world.w.files[listener].listener.bound.port = 80;
  REQUIRE(start_listening(world.w, listener, 4));
  const std::uint64_t conn = world.connect(80);
  world.admit();
  world.outputs();
  const std::uint32_t file = accept_connection(world.w, listener);
  const auto fill = [&](std::size_t wanted, std::size_t filled, char with) {
    const std::span<std::byte> room = reserve_written(world.w, file, wanted);
    std::memset(room.data(), with, filled);
    commit_written(world.w, file, room, filled);
    return room.size();
  };
  CHECK(fill(10, 10, 'a') == 10);
  CHECK(fill(10, 0, 'x') == 10);
  CHECK(fill(90'000, 60'000, 'b') == kOutputBytesMax);
  CHECK(connection_readiness(world.w, world.w.files[file]) == kOut);
  CHECK(fill(90'000, 39'990, 'c') == 39'990);
  CHECK(send_space(world.w, file) == 0);
  CHECK(connection_readiness(world.w, world.w.files[file]) == 0);
  const auto out = world.outputs();
  REQUIRE(out.size() == 3);
  CHECK(out[0].bytes == std::string(10, 'a'));
  CHECK(out[1].bytes == std::string(60'000, 'b'));
  CHECK(out[2].bytes == std::string(39'990, 'c'));
  CHECK(out[0].header.conn == conn);
  CHECK(out[1].header.argument == 10);
  CHECK(out[2].header.argument == 60'010);
}

TEST_CASE("close: FIN if all was read, otherwise RST; later entries are dropped", "[connections]") {
  Served s;
  std::uint64_t a_conn = 0;
  std::uint64_t b_conn = 0;
  std::uint64_t c_conn = 0;
  const std::uint32_t a = s.client(&a_conn);
  const std::uint32_t b = s.client(&b_conn);
  const std::uint32_t c = s.client(&c_conn);
  s.data(b_conn, "unread");
  s.admit();
  s.w.files[c].connection.linger_reset = true;  // SO_LINGER 0
  for (const std::uint32_t file : {a, b, c}) drop_reference(s.w, file);
  const auto out = s.outputs();
  REQUIRE(out.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(out[i].header.type == OutputType::kClose);
  CHECK(out[0].header.conn == a_conn);
  CHECK(out[0].header.argument == 0);
  CHECK(out[1].header.argument == 1);
  CHECK(out[2].header.argument == 1);
  s.data(a_conn, "late");
  s.shutdown(a_conn);
  s.window(a_conn, 1);
  s.reset(a_conn);
  s.admit();
  CHECK(s.outputs().empty());
  CHECK(s.w.files[a].kind == FileKind::kFree);
}

TEST_CASE("data for a closed read side is dropped but keeps the window open", "[connections]") {
  Served s;
  std::uint64_t conn = 0;
  const std::uint32_t file = s.client(&conn);
  shutdown_read(s.w, file);
  for (int i = 0; i < 3; ++i) s.data(conn, std::string(60'000, 'x'));
  s.admit();
  CHECK(readable_bytes(s.w, file) == 0);
  const auto out = s.outputs();
  REQUIRE(out.size() == 2);
  CHECK(out[0].header.type == OutputType::kConsumed);
  CHECK(out[0].header.argument == 60'000);
  CHECK(out[1].header.type == OutputType::kConsumed);
  CHECK(out[1].header.argument == 180'000);
}

TEST_CASE("closing a listener resets the clients in its queue", "[connections]") {
  Served s;
  const std::uint64_t a = s.connect(80);
  const std::uint64_t b = s.connect(80);
  s.admit();
  drop_reference(s.w, s.listener);
  const auto out = s.outputs();
  REQUIRE(out.size() == 3);
  CHECK(out[0].header.type == OutputType::kClose);
  CHECK(out[0].header.conn == a);
  CHECK(out[0].header.argument == 1);
  CHECK(out[1].header.conn == b);
  CHECK(out[2].header.type == OutputType::kUnlisten);
}

TEST_CASE("a full output ring delays the writer but does not change its schedule",
          "[connections]") {
  World world({.send_buffer = 1ull << 40});
  std::uint64_t sum = 0;
  std::uint64_t clock = 0;
  world.run_as(world.main, [&](Slot me) {
    Layout& w = world.w;
    get_turn(w, me);
    const std::uint32_t listener = create_file(w, me, FileKind::kSocket);
    w.files[listener].listener.bound.port = 80;
    start_listening(w, listener, 4);
    while (wait(w, me, 0, kNoDeadline, 1), w.files[listener].listener.queued == 0) {
    }
    const std::uint32_t file = accept_connection(w, listener);
    const std::string bytes(1 << 20, 'r');
    for (int i = 0; i < 40; ++i) {
      write_connection(w, file, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
    }
    clock = w.scheduler.clock;
    release_slot(w, me);
    leave(w, me);
  });
  world.start(kPlenty);
  REQUIRE(admit_from_node(world.w));
  world.until("the server listens", [&] { return world.w.scheduler.holder.load() == kHolderIdle; });
  world.connect(80);
  // Only the test wakes the main slot: it plays the listener's waiter.
  std::thread reader([&] {
    for (bool ended = false; !ended;) {
      for (const Output& o : world.outputs()) {
        if (o.header.type == OutputType::kBytes) sum += o.bytes.size();
      }
      ended = sum == 40u << 20;
      std::this_thread::yield();
    }
  });
  // The replica is idle, so the test can take the turn.
  wake(world.w, world.main, WakeReason::kSignalled);
  world.drive();
  reader.join();
  CHECK(sum == 40u << 20);
  CHECK(clock == 1);
}

TEST_CASE("the node never blocks on a full output ring", "[connections]") {
  CHECK(in_child([] {
          World world;
          world.start(kPlenty);
          // Without a listener each CONNECT makes a record, and no reader drains them.
          kill_slot(world.w, world.main);
          constexpr std::uint32_t kRecord = sizeof(OutputHeader) + Ring::kRecordHeader;
          for (std::uint64_t full = 0; full < kOutputBytes + 1000 * kRecord; full += kRecord) {
            world.connect(80);
            if (world.last_index() % 1000 == 0) admit_from_node(world.w);
          }
        }) == kFenced);
}
