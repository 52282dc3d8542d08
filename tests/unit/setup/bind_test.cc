// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/bind.h"

#include <catch2/catch.hpp>

namespace crane::setup {
namespace {

TEST_CASE("binds: every form is parsed", "[setup]") {
  CHECK(parse_bind("/a") == Bind{"/a", "/a", false});
  CHECK(parse_bind("/a:ro") == Bind{"/a", "/a", true});
  CHECK(parse_bind("/a:/b") == Bind{"/a", "/b", false});
  CHECK(parse_bind("/a:/b:ro") == Bind{"/a", "/b", true});
  CHECK(parse_bind(text_of({"/a", "/b", true})) == Bind{"/a", "/b", true});
  CHECK(parse_bind("a").source.front() == '/');
}

TEST_CASE("binds: several replicas never write to one directory without --bind-shared", "[setup]") {
  CHECK(check_binds({"/a"}, 1, Status::kUsage, "--bind").ok());
  CHECK(check_binds({"/a:ro", "/a:/b:ro"}, 3, Status::kUsage, "--bind").ok());
  for (const char* word : {"/a", "/a:/b"}) {
    const Outcome p = check_binds({"/c:ro", word}, 3, Status::kUsage, "--bind");
    CHECK(status_of(p) == Status::kUsage);
    for (const char* part : {"--data /a", "--bind-shared", ":ro", "3 replicas"}) {
      INFO((p.ok() ? "" : p.error().text));
      CHECK(p.error().text.find(part) != std::string::npos);
    }
  }
  for (const char* word : {"/a:b:ro", "/a::ro", "/a:/"}) {
    CHECK(status_of(check_binds({word}, 1, Status::kGroupFile, "x")) == Status::kGroupFile);
  }
}

TEST_CASE("binds: a missing source is refused by name", "[setup]") {
  CHECK(check_bind_sources({"/:ro", "/dev/null:/x"}, "--bind").ok());
  const Outcome p = check_bind_sources({"/:ro", "/no/such:/x:ro"}, "--bind");
  REQUIRE(status_of(p) == Status::kDirectory);
  CHECK(p.error().text.find("--bind: /no/such: No such file") == 0);
}

}  // namespace
}  // namespace crane::setup
