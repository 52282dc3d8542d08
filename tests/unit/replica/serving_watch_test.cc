// SPDX-License-Identifier: Apache-2.0
// Whether the server serves, according to the segment at each look.
#include "proxy/replica/status/serving_watch.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace crane::replica;

namespace {
using Queues = std::vector<ListenQueue>;
constexpr std::int64_t kLong = ServingWatch::kStuckNs;
}  // namespace

TEST_CASE("serving: a server that listens on a port serves", "[node]") {
  ServingWatch watch;
  watch.look(Queues{ListenQueue{80, 3, 7, false}}, false, 1);
  CHECK(watch.why_not(true, -1, 1).empty());
}

TEST_CASE("serving: a server that does not listen, does not run or has ended does not serve",
          "[node]") {
  ServingWatch watch;
  CHECK(watch.why_not(true, -1, 1) == "the server listens on no port");
  watch.look(Queues{ListenQueue{80, 0, 0, false}}, false, 1);
  CHECK(watch.why_not(false, -1, 1) == "the server does not run");
  CHECK(watch.why_not(false, 3, 1) == "the server has ended with status 3");
  watch.look(Queues{}, false, 2);
  CHECK(watch.why_not(true, -1, 2) == "the server listens on no port");
}

TEST_CASE("serving: a worker that listens on no port serves once it rests", "[node]") {
  ServingWatch watch;
  watch.look(Queues{}, true, 1);
  CHECK(watch.starts(true, -1));  // it may wait for something while it starts
  watch.look(Queues{}, false, 2);
  watch.look(Queues{}, true, 3);
  CHECK(watch.starts(true, -1));
  watch.look(Queues{}, true, 4);
  CHECK_FALSE(watch.starts(true, -1));
  CHECK(watch.why_not(true, -1, 4).empty());
  watch.look(Queues{}, false, 5);  // it works
  CHECK_FALSE(watch.starts(true, -1));
  // A server that has listened does not become a worker.
  watch.look(Queues{ListenQueue{80, 0, 0, false}}, false, 6);
  watch.look(Queues{}, true, 7);
  watch.look(Queues{}, true, 8);
  CHECK(watch.why_not(true, -1, 8) == "the server listens on no port");
}

TEST_CASE("serving: a full backlog from which no client is accepted for long is reported",
          "[node]") {
  ServingWatch watch;
  const ListenQueue full{80, 6, 7, true};
  watch.look(Queues{full}, false, 10);
  CHECK(watch.why_not(true, -1, 10 + kLong - 1).empty());
  watch.look(Queues{full}, false, 9 + kLong);
  CHECK(watch.why_not(true, -1, 10 + kLong) ==
        "the server has taken no client from the full backlog of port 80 for 5 s");

  SECTION("another head shows that a client was accepted") {
    watch.look(Queues{ListenQueue{80, 6, 8, true}}, false, 10 + kLong);
    CHECK(watch.why_not(true, -1, 10 + kLong).empty());
  }
  SECTION("so does room in the backlog") {
    watch.look(Queues{ListenQueue{80, 5, 7, false}}, false, 10 + kLong);
    CHECK(watch.why_not(true, -1, 10 + kLong).empty());
  }
}
