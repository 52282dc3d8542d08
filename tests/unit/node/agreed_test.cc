// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/agreed.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "dmt/sequence/entry.h"

using namespace crane;
using namespace crane::node;

namespace {

Config some() {
  Config c;
  c.replicas = 3;
  c.program = "/bin/sh";
  c.args = {"-c", "x"};
  c.env = {"A=1"};
  c.libcrane = "/bin/true";
  c.host.emplace();
  c.host->replicas = {{"10.0.0.1", 1, ""}, {"10.0.0.2", 1, ""}, {"10.0.0.3", 1, ""}};
  return c;
}

std::vector<std::byte> start_of(const Agreed& agreed) {
  std::vector<std::byte> payload(sizeof(StartBody) + sizeof agreed);
  std::memcpy(payload.data() + sizeof(StartBody), agreed.data(), sizeof agreed);
  return payload;
}

}  // namespace

TEST_CASE("agreed: configurations agree if they differ only in host-specific fields", "[agreed]") {
  Config a = some(), b = some();
  b.replica = 2;
  b.cpu = 1;
  b.dir = "/elsewhere";
  b.libcrane = "/bin/sh";  // another build with the same versions
  b.host->state_dir = "/elsewhere";
  b.host->replicas[1].cpu = 3;
  CHECK(first_difference(digests_of(a), start_of(digests_of(b))) == nullptr);
  CHECK(first_difference(digests_of(a), std::vector<std::byte>(sizeof(StartBody))) == nullptr);
}

TEST_CASE("agreed: every difference is reported by its name", "[agreed]") {
  struct Row {
    std::function<void(Config&)> change;
    const char* word;
  };
  const Row rows[] = {
      {[](Config& c) { c.program = "/bin/true"; }, "program"},
      {[](Config& c) { c.args = {"-c x"}; }, "command line"},  // not the same words
      {[](Config& c) { c.env.push_back("B=2"); }, "environment"},
      {[](Config& c) { c.mode = dmt::Mode::kParallel; }, "mode"},
      {[](Config& c) { c.admission = dmt::Admission::kClassic; }, "admission"},
      {[](Config& c) { c.quantum = 3; }, "quantum"},
      {[](Config& c) { c.spins = true; }, "--spins"},
      {[](Config& c) { c.detach = {"fsync"}; }, "--detach"},
      {[](Config& c) {
         c.soft_barriers = {{"f", 8, 5000, ""}};
       },
       "--soft-barrier"},
      {[](Config& c) { c.send_buffer = 4096; }, "send buffer"},
      {[](Config& c) { c.base_digest = 7; }, "--data"},
      {[](Config& c) { c.host->replicas[1].address = "10.0.0.9"; }, "list of replicas"},
  };
  const Agreed own = digests_of(some());
  for (const Row& row : rows) {
    Config other = some();
    row.change(other);
    const char* found = first_difference(own, start_of(digests_of(other)));
    CAPTURE(row.word);
    REQUIRE(found != nullptr);
    CHECK(std::string(found).find(row.word) != std::string::npos);
    CHECK(first_difference(own, digests_of(other)) == found);
    const bool about_hosts = std::string(row.word) == "list of replicas";
    CHECK((own[kAgreedReplicas] != digests_of(other)[kAgreedReplicas]) == about_hosts);
  }
}

TEST_CASE("agreed: a build with another version is refused, and the report names the version",
          "[agreed]") {
  const Agreed own = digests_of(some());
  std::size_t item = kServerItems;
  for (const AgreedVersion& version : kAgreedVersions) {
    Agreed theirs = own;
    theirs[item++] ^= 2;
    const char* found = first_difference(own, start_of(theirs));
    REQUIRE(found != nullptr);
    CHECK(std::string(found).find(std::string(version.name) + " version") != std::string::npos);
  }
}

TEST_CASE("agreed: a START with another number of items comes from another build", "[agreed]") {
  // Builds before the table of versions had 13 items; the eighth was libcrane.so's digest.
  for (const std::size_t items : {std::size_t{13}, kAgreedItems + 1}) {
    const std::vector<std::byte> start(sizeof(StartBody) + items * sizeof(std::uint64_t));
    const char* found = first_difference(digests_of(some()), start);
    REQUIRE(found != nullptr);
    CHECK(std::string(found).find("build") != std::string::npos);
  }
}
