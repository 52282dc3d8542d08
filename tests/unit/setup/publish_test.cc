// SPDX-License-Identifier: Apache-2.0
// GOAL    --publish is parsed as written, and gives each port one place.
// METHOD  Texts, and the texts written back.
// CHECKS  Addresses of both families; refusals.
#include "runtime/setup/publish.h"

#include <catch2/catch.hpp>

using namespace crane::setup;

TEST_CASE("publish: an address may come before the two ports", "[setup]") {
  Ports ports;
  CHECK(add_publish("8080:80", ports) == nullptr);
  CHECK(add_publish("443", ports) == nullptr);
  CHECK(add_publish("127.0.0.1:8081:81", ports) == nullptr);
  CHECK(add_publish("[2001:DB8:0::7]:8082:82", ports) == nullptr);
  CHECK(add_publish("[::]:8083:83", ports) == nullptr);
  CHECK(ports == Ports{{8080, 80},
                       {443, 443},
                       {8081, 81, "127.0.0.1"},
                       {8082, 82, "2001:db8::7"},
                       {8083, 83, "*"}});
  Ports again;
  for (const Published& port : ports) CHECK(add_publish(text(port), again) == nullptr);
  CHECK(again == ports);
  CHECK(published_port(ports, 81)->ours == 8081);
  CHECK_FALSE(published_port(ports, 84).has_value());
  CHECK(*published_port({}, 84) == Published{84, 84});
}

TEST_CASE("publish: an invalid address or port is refused", "[setup]") {
  Ports ports;
  for (const char* wrong :
       {"", ":", "80:", ":80", "0:80", "8080:80:", ":8080:80", "host:8080:80", "::1:8080:80",
        "[127.0.0.1]:8080:80", "[::1:8080:80", "1.2.3:8080:80", "127.0.0.1:80", "1:2:3:4"}) {
    CAPTURE(wrong);
    CHECK(add_publish(wrong, ports) != nullptr);
  }
  CHECK(ports.empty());
}
