// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/bind.h"

#include <catch2/catch.hpp>

namespace crane::setup {
namespace {

TEST_CASE("binds: every form of the word", "[setup]") {
  CHECK(parse_bind("/a") == Bind{"/a", "/a", false});
  CHECK(parse_bind("/a:ro") == Bind{"/a", "/a", true});
  CHECK(parse_bind("/a:/b") == Bind{"/a", "/b", false});
  CHECK(parse_bind("/a:/b:ro") == Bind{"/a", "/b", true});
  CHECK(parse_bind(text_of({"/a", "/b", true})) == Bind{"/a", "/b", true});
  CHECK(parse_bind("a").source.front() == '/');
}

TEST_CASE("binds: several replicas never write to one directory unasked", "[setup]") {
  CHECK(check_binds({"/a"}, 1, Status::kUsage, "--bind").none());
  CHECK(check_binds({"/a:ro", "/a:/b:ro"}, 3, Status::kUsage, "--bind").none());
  for (const char* word : {"/a", "/a:/b"}) {
    const Problem p = check_binds({"/c:ro", word}, 3, Status::kUsage, "--bind");
    CHECK(p.status == Status::kUsage);
    for (const char* part : {"--data /a", "--bind-shared", ":ro", "3 replicas"}) {
      INFO(p.text);
      CHECK(p.text.find(part) != std::string::npos);
    }
  }
  for (const char* word : {"/a:b:ro", "/a::ro", "/a:/"}) {
    CHECK(check_binds({word}, 1, Status::kGroupFile, "x").status == Status::kGroupFile);
  }
}

}  // namespace
}  // namespace crane::setup
