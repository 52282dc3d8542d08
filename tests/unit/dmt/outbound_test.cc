// SPDX-License-Identifier: Apache-2.0
// GOAL    A connection that the server opens has one request, one outcome and one end.
// METHOD  The test holds the turn and pushes the entries of a leader.
// CHECKS  OUTBOUND-1; the state of a socket while it connects, afterwards, and when connecting has
//         failed.
#include "dmt/outbound.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/socket_directories.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

VirtualAddress at(std::uint16_t port, std::uint8_t last = 1) { return address_in(10, port, last); }

struct Outbound : World {
  Outbound() { hold(); }
  std::uint32_t begin(const VirtualAddress& bound = {}) {
    const std::uint32_t file = create_file(w, main, FileKind::kSocket);
    w.files[file].listener.bound = bound;
    begin_connect(w, file, at(80), bound);
    return file;
  }
  std::uint32_t begin_unix(std::string_view path) {
    const std::uint32_t file = create_file(w, main, FileKind::kUnixSocket);
    w.files[file].port = SOCK_STREAM;
    begin_unix_connect(w, file, path);
    return file;
  }
  std::uint32_t blocks() const { return w.scheduler.blocks_in_use.load(); }
  ConnId conn(std::uint32_t file) const { return w.files[file].connection.conn; }
  void outcome(ConnId of, std::int32_t error) {
    ConnectedBody body{};
    body.conn = of;
    body.error = error;
    body.local = at(50000, 9);
    body.slot = 3;
    body.socket = SocketId{77};
    push(EntryType::kConnected, kPlenty, &body, sizeof body);
    admit();
  }
  Readiness ready(std::uint32_t file) const { return w.files[file].readiness; }
  std::string types() {
    std::string all;
    for (const Output& o : outputs()) {
      all += o.header.type == OutputType::kConnect ? "connect "
             : o.header.type == OutputType::kBytes ? "bytes "
             : o.header.type == OutputType::kClose ? "close "
                                                   : "? ";
    }
    return all;
  }
};

}  // namespace

TEST_CASE_METHOD(Outbound, "connect sends a request to the leader and waits for the outcome",
                 "[outbound]") {
  const std::uint32_t file = begin(at(0, 5));
  CHECK(is_outbound(conn(file)));
  CHECK(ready(file) == 0);
  CHECK(send_space(w, file) == 0);
  const std::vector<Output> records = outputs();
  REQUIRE(records.size() == 1);
  CHECK(records[0].header.type == OutputType::kConnect);
  CHECK(records[0].header.conn == value(conn(file)));
  CHECK(records[0].header.conn == (kOutboundBit | records[0].header.clock));
  OutboundRequest request;
  REQUIRE(records[0].bytes.size() == sizeof request);
  std::memcpy(&request, records[0].bytes.data(), sizeof request);
  CHECK(request.peer.port == 80);
  CHECK(request.local.ip[3] == 5);
  outcome(conn(file), 0);
  const ConnectionState& c = w.files[file].connection;
  CHECK_FALSE(c.connecting);
  CHECK(c.local.port == 50000);
  CHECK(c.socket == SocketId{77});
  CHECK(c.table_slot == 3);
  CHECK(ready(file) == kOut);
  // From now on it is an ordinary connection.
  data(value(conn(file)), "hello");
  admit();
  CHECK(ready(file) == (kIn | kOut));
  CHECK(write_connection(w, file, reinterpret_cast<const std::byte*>("abc"), 3) == 3);
  shutdown(value(conn(file)));
  admit();
  CHECK((ready(file) & kRdHup) != 0);
  drop_reference(w, file);
  CHECK(types() == "bytes close ");  // OUTBOUND-1
}

TEST_CASE_METHOD(Outbound, "a refused connect leaves a socket that reports the error once",
                 "[outbound]") {
  const std::uint32_t file = begin(at(7, 5));
  const ConnId first = conn(file);
  CHECK(types() == "connect ");
  outcome(first, ECONNREFUSED);
  CHECK(types() == "close ");  // OUTBOUND-1
  CHECK(w.files[file].kind == FileKind::kSocket);
  CHECK(w.files[file].listener.connect_error == ECONNREFUSED);
  CHECK(w.files[file].listener.bound.port == 7);
  CHECK(ready(file) == (kIn | kOut | kErr | kHup | kRdHup));
  outcome(first, 0);  // an answer that comes too late
  CHECK(w.files[file].kind == FileKind::kSocket);
  // It can try again.
  w.files[file].listener.connect_error = 0;
  ++w.scheduler.clock;
  begin_connect(w, file, at(81), {});
  CHECK(conn(file) != first);
  outcome(conn(file), 0);
  CHECK(ready(file) == kOut);
}

TEST_CASE_METHOD(Outbound, "an attempt ends when the server closes or shuts down the socket",
                 "[outbound]") {
  const std::uint32_t file = begin();
  const ConnId closed = conn(file);
  drop_reference(w, file);
  CHECK(types() == "connect close ");  // OUTBOUND-1
  outcome(closed, 0);
  CHECK(outputs().empty());
  ++w.scheduler.clock;
  const std::uint32_t other = begin();
  give_up_connect(w, other);
  CHECK(types() == "connect close ");
  CHECK(w.files[other].listener.connect_error == ECONNRESET);
  drop_reference(w, other);
  CHECK(outputs().empty());
}

TEST_CASE_METHOD(Outbound, "a START that resets connections leaves attempts to the new leader",
                 "[outbound]") {
  const std::uint32_t waits = begin();
  ++w.scheduler.clock;
  const std::uint32_t open = begin();
  outcome(conn(open), 0);
  start(kPlenty, 2, true);
  admit();
  CHECK(w.files[open].connection.socket_error == ECONNRESET);
  CHECK(w.files[waits].connection.connecting);
  outcome(conn(waits), 0);
  CHECK(ready(waits) == kOut);
}

TEST_CASE_METHOD(Outbound, "the path of a unix socket is in the record, and stored", "[outbound]") {
  const std::string path =
      GENERATE(std::string("/s"), "/" + std::string(kSocketPathBytes - 1, 'p'));
  const std::uint32_t before = blocks();
  const std::uint32_t file = begin_unix(path);
  const std::vector<Output> records = outputs();
  REQUIRE(records.size() == 1);
  OutboundRequest request;
  REQUIRE(records[0].bytes.size() == sizeof request + path.size());
  std::memcpy(&request, records[0].bytes.data(), sizeof request);
  CHECK(request.peer.family == AF_UNIX);
  CHECK(std::memcmp(records[0].bytes.data() + sizeof request, path.data(), path.size()) == 0);
  CHECK(socket_path(w, w.files[file].connection) == path);
  SECTION("during a connection") {
    outcome(conn(file), 0);
    CHECK(socket_path(w, w.files[file].connection) == path);
    CHECK(ready(file) == kOut);
  }
  SECTION("during an attempt that is closed") {}
  SECTION("until it has failed") {
    outcome(conn(file), ENOENT);
    CHECK(w.files[file].kind == FileKind::kUnixSocket);
    CHECK(w.files[file].port == SOCK_STREAM);
    CHECK(w.files[file].listener.connect_error == ENOENT);
    CHECK(ready(file) == (kIn | kOut | kErr | kHup | kRdHup));
    CHECK(blocks() == before);
  }
  drop_reference(w, file);
  CHECK(types() == "close ");  // OUTBOUND-1
  CHECK(blocks() == before);
}

TEST_CASE_METHOD(Outbound, "unix sockets of the host are those below a bound directory",
                 "[outbound]") {
  CHECK_FALSE(is_in_socket_directory(w, "/srv/host/a"));
  REQUIRE(add_socket_directory(w, "/srv/host/"));
  REQUIRE(add_socket_directory(w, "/run"));
  CHECK(is_in_socket_directory(w, "/srv/host/a"));
  CHECK(is_in_socket_directory(w, "/run//b/..c/d"));
  for (const char* other :
       {"/srv/host", "/srv/host/", "/srv/hosts/a", "/srv/host/../a", "a", "", "/run/b/.."}) {
    CHECK_FALSE(is_in_socket_directory(w, other));
  }
  const std::string longest = "/" + std::string(100, 'd');
  while (add_socket_directory(w, longest)) continue;
  CHECK(is_in_socket_directory(w, longest + "/a"));
  CHECK(w.socket_directories[kSocketDirectoriesBytes - 1] == '\0');
}
