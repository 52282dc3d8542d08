// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/batch.h"

#include <catch2/catch.hpp>

#include "tests/unit/clients/fake_log.h"

using namespace crane;
using namespace crane::proxy;

namespace {
void add(Batch& batch, Opener& from, const std::string& text) {
  const auto room = batch.room(text.size());
  std::memcpy(room.data(), text.data(), text.size());
  batch.add_data(from, text.size());
}
}  // namespace

TEST_CASE("only the last entry of a batch grants turns", "[batch]") {
  FakeLog log;
  Batch batch;
  Opener a{ConnId{7}}, b{ConnId{8}};
  add(batch, a, "one");
  add(batch, b, "two");
  batch.add_shutdown(a);
  REQUIRE(batch.entries() == 3);
  REQUIRE(log.propose_all(batch, 256).ok());
  REQUIRE(batch.empty());
  REQUIRE(log.types() == "data data shutdown");
  REQUIRE(log.taken[0].grant == 0);
  REQUIRE(log.taken[1].grant == 0);
  REQUIRE(log.taken[2].grant == 256);
  REQUIRE(log.taken[0].data() == "one");
  REQUIRE(log.taken[1].as<DataBody>().conn == ConnId{8});
}

TEST_CASE("entries after a CONNECT in the same batch carry its connection number", "[batch]") {
  FakeLog log;
  std::vector<ConnId> opened;
  Batch batch;
  Opener fresh, other{ConnId{5}};
  batch.add_connect(fresh, connect_body(80, {}, {}));
  add(batch, fresh, "hello");
  add(batch, other, "x");
  batch.add_window(fresh, 1234);
  batch.add_reset(fresh);
  REQUIRE(batch.propose_all(1, log, [&](Opener& o) { opened.push_back(o.conn); }).ok());
  REQUIRE(log.types() == "connect data data window reset");
  REQUIRE(fresh.conn == ConnId{100});
  REQUIRE(opened == std::vector<ConnId>{ConnId{100}});
  REQUIRE(log.taken[1].as<DataBody>().conn == ConnId{100});
  REQUIRE(log.taken[1].data() == "hello");
  REQUIRE(log.taken[3].as<WindowBody>().conn == ConnId{100});
  REQUIRE(log.taken[3].as<WindowBody>().total == 1234);
  REQUIRE(log.taken[4].as<ConnBody>().conn == ConnId{100});
}

TEST_CASE("a DATA entry records that its last byte is urgent, and the connection", "[batch]") {
  FakeLog log;
  Batch batch;
  Opener fresh, known{ConnId{kOutboundBit | 7}};
  batch.add_connect(fresh, connect_body(80, {}, {}));
  for (Opener* from : {&fresh, &known}) {
    for (const bool urgent : {false, true}) {
      batch.room(1)[0] = std::byte{'!'};
      batch.add_data(*from, 1, urgent);
    }
  }
  REQUIRE(log.propose_all(batch, 1).ok());
  REQUIRE(log.types() == "connect data data data data");
  for (std::size_t i = 1; i < log.taken.size(); ++i) {
    const auto data = log.taken[i].as<DataBody>();
    CHECK(is_urgent(data) == (i % 2 == 0));
    CHECK(connection_of(data) == (i < 3 ? ConnId{100} : known.conn));
    CHECK((data.conn == connection_of(data)) == (i % 2 == 1));  // as earlier builds wrote it
    CHECK(log.taken[i].data() == "!");
  }
}

TEST_CASE("B1: while the pipeline is full, the rest stays in order and each entry is proposed once",
          "[batch]") {
  FakeLog log;
  Batch batch;
  Opener fresh;
  batch.add_connect(fresh, connect_body(80, {}, {}));
  add(batch, fresh, "a");
  add(batch, fresh, "b");
  log.room = 1;
  REQUIRE(log.propose_all(batch, 9).error().code == Code::kBusy);
  REQUIRE(batch.entries() == 2);
  add(batch, fresh, "c");
  log.room = -1;
  REQUIRE(log.propose_all(batch, 9).ok());
  REQUIRE(log.types() == "connect data data data");
  REQUIRE(log.taken[3].data() == "c");
  REQUIRE(log.taken[2].grant == 0);
  REQUIRE(log.taken[3].grant == 9);
}

TEST_CASE("C8: a deposed leader drops the input that it has read", "[batch]") {
  FakeLog log;
  Batch batch;
  Opener a{ConnId{7}};
  add(batch, a, "lost");
  log.fails = Code::kNotLeader;
  REQUIRE(log.propose_all(batch, 1).error().code == Code::kNotLeader);
  REQUIRE(batch.empty());
  log.fails = Code::kOk;
  REQUIRE(log.propose_all(batch, 1).ok());
  REQUIRE(log.taken.empty());
}
