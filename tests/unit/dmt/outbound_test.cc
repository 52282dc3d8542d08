// SPDX-License-Identifier: Apache-2.0
// GOAL    TCP connections that the server opens: the request, its outcome, its end.
// METHOD  The test holds the turn, and pushes what a leader would.
// CHECKS  OUTBOUND-1; what a socket is while it connects, afterwards, and when that has failed.
#include "dmt/outbound.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "dmt/connections.h"
#include "dmt/files.h"
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

TEST_CASE_METHOD(Outbound, "connect asks the leader and waits for its word", "[outbound]") {
  const std::uint32_t file = begin(at(0, 5));
  CHECK(is_outbound(conn(file)));
  CHECK(ready(file) == 0);
  CHECK(send_space(w, file) == 0);
  const std::vector<Output> said = outputs();
  REQUIRE(said.size() == 1);
  CHECK(said[0].header.type == OutputType::kConnect);
  CHECK(said[0].header.conn == value(conn(file)));
  CHECK(said[0].header.conn == (kOutboundBit | said[0].header.clock));
  OutboundRequest request;
  REQUIRE(said[0].bytes.size() == sizeof request);
  std::memcpy(&request, said[0].bytes.data(), sizeof request);
  CHECK(request.peer.port == 80);
  CHECK(request.local.ip[3] == 5);
  outcome(conn(file), 0);
  const ConnectionState& c = w.files[file].connection;
  CHECK_FALSE(c.connecting);
  CHECK(c.local.port == 50000);
  CHECK(c.socket == SocketId{77});
  CHECK(c.table_slot == 3);
  CHECK(ready(file) == kOut);
  // From here on it is a connection as any other.
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

TEST_CASE_METHOD(Outbound, "a refused connect leaves a socket that tells it once", "[outbound]") {
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

TEST_CASE_METHOD(Outbound, "an attempt that the server closes or shuts down is over",
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

TEST_CASE_METHOD(Outbound, "a START that resets leaves attempts to the new leader", "[outbound]") {
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
