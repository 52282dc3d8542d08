// SPDX-License-Identifier: Apache-2.0
// GOAL    TCP urgent data behaves as on Linux, for entries of the log and between the server's own
//         sockets.
// METHOD  The test holds the turn, admits entries one by one and plays the server.
// CHECKS  The entry's flag; marks, reads that stop at them, POLLPRI, SIGURG; the output's flag.
#include "dmt/urgent.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/loopback.h"
#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

struct Served : World {
  Served() {
    hold();
    listener = create_file(w, main, FileKind::kSocket);
    w.files[listener].listener.bound = address_in(127, 80, 1);
    REQUIRE(start_listening(w, listener, 16));
    conn = connect(80);
    admit();
    file = accept_connection(w, listener);
    REQUIRE(file != 0);
    outputs();
  }
  ConnectionState& state() { return w.files[file].connection; }
  // Admits bytes of a client, the last of which is urgent.
  void urgent(const std::string& bytes) {
    std::string body(sizeof(DataBody), '\0');
    const DataBody head = data_body(ConnId{conn}, true);
    std::memcpy(body.data(), &head, sizeof head);
    body += bytes;
    push(EntryType::kData, kPlenty, body.data(), static_cast<std::uint32_t>(body.size()));
    admit();
  }
  void plain(const std::string& bytes) {
    data(conn, bytes);
    admit();
  }
  std::string read(std::size_t size = 100, bool peek = false) {
    std::string got(size, '\0');
    got.resize(read_connection(w, file, reinterpret_cast<std::byte*>(got.data()), size, peek));
    return got;
  }
  int get(bool peek = false) { return take_urgent(w, file, peek); }
  Readiness ready() const { return w.files[file].readiness; }
  bool rings() const { return (w.processes[kMainProcess].pending_signals & kSigUrg) != 0; }
  static constexpr std::uint64_t kSigUrg = 1ULL << (SIGURG - 1);

  std::uint32_t listener = 0, file = 0;
  std::uint64_t conn = 0;
};

}  // namespace

TEST_CASE("the flag of an entry is not part of its connection's number", "[urgent]") {
  for (const std::uint64_t number : {std::uint64_t{1}, kOutboundBit | 77}) {
    const DataBody plain = data_body(ConnId{number}, false);
    const DataBody urgent = data_body(ConnId{number}, true);
    CHECK(value(plain.conn) == number);  // as earlier builds wrote it
    CHECK(connection_of(plain) == connection_of(urgent));
    CHECK_FALSE(is_urgent(plain));
    CHECK(is_urgent(urgent));
  }
}

TEST_CASE_METHOD(Served, "reads stop at the mark and skip the urgent byte", "[urgent]") {
  plain("x");
  urgent("ab!");
  plain("cd");
  CHECK(ready() == (kIn | kOut | kPri));
  CHECK(readable_bytes(w, file) == 3);
  CHECK(unread_bytes(state()) == 3);
  CHECK(read(100, true) == "xab");
  CHECK(get(true) == '!');
  CHECK(get() == '!');
  CHECK(get() == -EINVAL);
  CHECK(ready() == (kIn | kOut));
  CHECK(read(2) == "xa");
  CHECK_FALSE(is_at_mark(state()));
  CHECK(read() == "b");
  CHECK(is_at_mark(state()));
  CHECK(unread_bytes(state()) == 0);
  CHECK(read(100, true) == "cd");
  CHECK(is_at_mark(state()));
  CHECK(read() == "cd");
  CHECK_FALSE(has_mark(state()));
  CHECK(state().consumed == state().received);
}

TEST_CASE_METHOD(Served, "an urgent byte alone makes nothing readable, and inline it is read",
                 "[urgent]") {
  urgent("!");
  CHECK(ready() == (kOut | kPri));
  CHECK(readable_bytes(w, file) == 0);
  set_urgent_inline(w, file, true);
  CHECK(ready() == (kIn | kOut | kPri));
  CHECK(get() == -EINVAL);
  CHECK(is_at_mark(state()));
  CHECK(read() == "!");
  CHECK_FALSE(has_mark(state()));
  CHECK(ready() == kOut);
}

TEST_CASE_METHOD(Served, "a later mark replaces the earlier one", "[urgent]") {
  urgent("a1");
  urgent("b2");
  CHECK(get() == '2');
  CHECK(read() == "a1b");
  CHECK(is_at_mark(state()));
  urgent("c3");  // the reader had reached the earlier mark, whose byte is lost
  CHECK(read() == "c");
  CHECK(get() == '3');
}

TEST_CASE_METHOD(Served, "the urgent byte is found in any block of the input", "[urgent]") {
  const std::string much(3 * kBlockBytes - 1, 'x');
  urgent(much + "!");
  plain("rest");
  CHECK(get(true) == '!');
  CHECK(read(kBlockBytes).size() == kBlockBytes);
  CHECK(get() == '!');
  CHECK(read(much.size()).size() == much.size() - kBlockBytes);
  CHECK(read(100, true) == "rest");
  CHECK(read() == "rest");
}

TEST_CASE_METHOD(Served, "the owner gets SIGURG with the entry", "[urgent]") {
  w.processes[kMainProcess].dispositions[SIGURG] = Disposition::kHandler;
  const std::uint32_t pid = w.processes[kMainProcess].pid = 4711;
  w.processes[kMainProcess].group = 4700;
  urgent("1");
  CHECK_FALSE(rings());
  FileOwner& owner = w.files[file].owner;
  for (const OwnerKind kind : {OwnerKind::kProcess, OwnerKind::kGroup}) {
    owner.kind = kind;
    owner.id = kind == OwnerKind::kProcess ? pid : 4700;
    plain("x");
    CHECK_FALSE(rings());
    urgent("2");
    CHECK(rings());
    w.processes[kMainProcess].pending_signals = 0;
  }
  owner.kind = OwnerKind::kNoOwner;
  urgent("3");
  CHECK_FALSE(rings());
}

TEST_CASE_METHOD(Served, "the output records which byte is urgent", "[urgent]") {
  const std::string text = "alarm";
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  CHECK(write_connection(w, file, bytes, text.size(), true) == text.size());
  CHECK(write_connection(w, file, bytes, text.size()) == text.size());
  const auto out = outputs();
  REQUIRE(out.size() == 2);
  CHECK(out[0].header.marks.urgent);
  CHECK_FALSE(out[1].header.marks.urgent);
}

TEST_CASE_METHOD(Served, "the server's own sockets have urgent data, too", "[urgent][LOOPBACK-1]") {
  const std::uint32_t to = create_file(w, main, FileKind::kSocket);
  REQUIRE(
      connect_loopback(w, main, to, listener, address_in(127, 40000, 1), address_in(127, 80, 1)));
  file = accept_connection(w, listener);
  const auto write = [this, to](const std::string& text, bool urgent) {
    return write_connection(w, to, reinterpret_cast<const std::byte*>(text.data()), text.size(),
                            urgent);
  };
  CHECK(write("ab!", true) == 3);
  CHECK(ready() == (kIn | kOut | kPri));
  CHECK(read() == "ab");
  CHECK(get() == '!');
  CHECK(write("2", true) == 1);  // drops the byte that the reader has reached
  CHECK(is_at_mark(state()));
  CHECK(write("c", false) == 1);
  CHECK(read() == "c");
  CHECK(w.files[to].connection.drained == w.files[to].connection.sent);
  CHECK(get() == -EINVAL);
  CHECK(outputs().empty());
}
