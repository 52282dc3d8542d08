// SPDX-License-Identifier: Apache-2.0
// GOAL    Each word of --soft-barrier has one meaning; points of profiles are valid in parallel
//         mode only.
// METHOD  Words as users write them, including wrong ones; a profile with points.
// CHECKS  Fields, refusals, precedence.
#include "runtime/setup/soft_barrier.h"

#include <catch2/catch.hpp>

#include "runtime/setup/profile.h"

using namespace crane::setup;

TEST_CASE("soft barriers: a function, a count and a time", "[setup]") {
  SoftBarrier l;
  REQUIRE(parse_soft_barrier("php_execute_script:8:5000", l));
  CHECK(l.function == "php_execute_script");
  CHECK(l.count == 8);
  CHECK(l.timeout_us == 5000);
  CHECK(text_of(l) == "php_execute_script:8:5000");
  CHECK(check_soft_barriers({"f:1:0", "_ZN3foo3barEv:4096:1000000000"}).ok());
  for (const char* wrong : {"", "f", "f:8", "f:8:", ":8:5000", "f:0:5000", "f:8:5000:1", "f:-1:1",
                            "f: 8:1", "f:4097:1", "f:8:1000000001", "a b:8:1", "f:8:99999999999"}) {
    CAPTURE(wrong);
    CHECK(status_of(check_soft_barriers({wrong})) == Status::kUsage);
  }
  const std::string long_name(64, 'f');
  CHECK(check_soft_barriers({long_name.substr(1) + ":8:1"}).ok());
  CHECK(status_of(check_soft_barriers({long_name + ":8:1"})) == Status::kUsage);
  CHECK(status_of(check_soft_barriers({"a:1:1", "b:1:1", "c:1:1", "d:1:1", "e:1:1"})) ==
        Status::kUsage);
}

TEST_CASE("soft barriers: the user's come first, then the profile's in parallel mode", "[setup]") {
  Profile profile{.name = "p", .soft_barriers = {{"f", 8, 5000}, {"g", 8, 5000}}};
  const auto texts = [&](const std::vector<std::string>& words, bool parallel) {
    std::vector<std::string> all;
    for (const auto& l : chosen_soft_barriers(words, profile, parallel)) {
      all.push_back(text_of(l) + " " + l.origin);
    }
    return all;
  };
  using Texts = std::vector<std::string>;
  CHECK(texts({}, false) == Texts{});
  CHECK(texts({}, true) == Texts{"f:8:5000 the profile p", "g:8:5000 the profile p"});
  CHECK(texts({"f:1:0"}, true) == Texts{"f:1:0 --soft-barrier", "g:8:5000 the profile p"});
  CHECK(texts({"h:2:9"}, false) == Texts{"h:2:9 --soft-barrier"});
  CHECK(texts({"a:2:9", "b:2:9", "c:2:9", "d:2:9"}, true).size() == 4);
}
