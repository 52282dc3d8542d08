// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/secret.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/unit/setup/scratch.h"

using namespace crane::setup;
using crane::Outcome;

TEST_CASE("secret: a generated one can be used, and is not generated twice", "[setup]") {
  Scratch scratch;
  const std::string path = scratch.path + "/secret";
  REQUIRE(make_secret(path).ok());
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  GroupKeys keys, again;
  REQUIRE(read_secret(path, "g", keys).ok());
  REQUIRE(read_secret(path, "g", again).ok());
  CHECK(keys.log_id == again.log_id);
  CHECK(status_of(make_secret(path)) == Status::kSecret);
  GroupKeys other;
  REQUIRE(make_secret(path + "2").ok());
  REQUIRE(read_secret(path + "2", "g", other).ok());
  CHECK(other.log_id != keys.log_id);
}

TEST_CASE("secret: a file that other users can read, or a short secret, is refused", "[setup]") {
  Scratch scratch;
  const std::string good(32, 'x');
  GroupKeys keys;
  CHECK(read_secret(scratch.file("good", good, 0600), "g", keys).ok());
  CHECK(read_secret(scratch.file("own", good, 0400), "g", keys).ok());
  for (const mode_t mode : {0640, 0604, 0620, 0660, 0644, 0666}) {
    const Outcome p = read_secret(scratch.file("open", good, mode), "g", keys);
    CAPTURE(mode, (p.ok() ? "" : p.error().text));
    CHECK(status_of(p) == Status::kSecret);
    CHECK(p.error().text.find("chmod 600") != std::string::npos);
  }
  // Line ends are not secret: 31 bytes and a line end are 31 bytes.
  const Outcome p =
      read_secret(scratch.file("short", std::string(31, 'x') + "\n", 0600), "g", keys);
  CHECK(status_of(p) == Status::kSecret);
  CHECK(p.error().text.find("31 bytes") != std::string::npos);
  CHECK(status_of(read_secret(scratch.path + "/none", "g", keys)) == Status::kSecret);
  CHECK(status_of(read_secret(scratch.path, "g", keys)) == Status::kSecret);
}

TEST_CASE("secret: every use and every group has its own key", "[setup]") {
  const std::string secret(40, 's');
  const GroupKeys a = derive_keys(secret, "a"), b = derive_keys(secret, "b");
  CHECK(a.log_id != b.log_id);
  CHECK(a.links != b.links);
  CHECK(a.random != b.random);
  CHECK(a.log_id != 0);
  CHECK((a.log_id | 1) != (a.random[0] | 1));
  CHECK(derive_keys(secret, "a").links == a.links);
  CHECK(derive_keys(secret + "t", "a").links != a.links);
}
