// SPDX-License-Identifier: Apache-2.0
// UNIT    dmt/base/result.h
// GOAL    One Error serves code that decides and code that reports.
// CHECKS  message() of each form; that an error goes through results of other types whole.
#include "dmt/base/result.h"

#include <catch2/catch.hpp>
#include <cerrno>

using namespace crane;

namespace {

Result<int> number(Error error) { return error; }

// Passes an error on, as most functions do with an error of a function that they call.
Outcome hand_on(const Error& error) {
  const auto got = number(error);
  if (!got) return got.error();
  return Done{};
}

}  // namespace

TEST_CASE("error: the message is its text, or else the step and the reason from errno") {
  CHECK(failure(Code::kFull, "write", "cannot write /a: no room; make some").message() ==
        "cannot write /a: no room; make some");
  CHECK(Error{Code::kDamaged, 0, "a checksum differs"}.message() == "a checksum differs");
  errno = ENOENT;
  CHECK(system_error("open the store").message() == "open the store: No such file or directory");
}

TEST_CASE("error: results of other types pass it on unchanged") {
  Error error = failure(Code::kExists, "lock", "another group runs here");
  error.detail = EEXIST;
  error.exit_status = 111;
  const Outcome got = hand_on(error);
  REQUIRE_FALSE(got.ok());
  CHECK(got.error().code == Code::kExists);
  CHECK(got.error().detail == EEXIST);
  CHECK(std::string(got.error().what) == "lock");
  CHECK(got.error().text == "another group runs here");
  CHECK(got.error().exit_status == 111);
}
