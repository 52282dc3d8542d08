// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/context_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "runtime/launcher/ctl/context.h"
#include "runtime/launcher/ctl/find_group.h"

namespace fs = std::filesystem;
using namespace crane;
using namespace crane::launcher;

namespace {

struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/crane-context-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Scratch() { fs::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

setup::GroupFile shop() {
  setup::GroupFile file;
  file.name = "shop";
  file.secret_file = "/replaced";
  file.command = {"redis-server"};
  for (const char* address : {"127.0.0.1", "127.0.0.2", "127.0.0.3"}) {
    file.replicas.push_back({address, 7100});
  }
  return file;
}

unsigned mode_of(const std::string& path) {
  struct stat found {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  return found.st_mode & 07777U;
}

}  // namespace

TEST_CASE("the context of a group can be found and read until it is removed", "[context]") {
  Scratch scratch;
  const std::string secret(64, 'a');
  REQUIRE(write_context(scratch.path, shop(), std::string(64, 'b')).ok());
  REQUIRE(write_context(scratch.path, shop(), secret).ok());  // a later group of that name
  bool denied = false;
  CHECK(contexts_in(scratch.path, denied) == std::vector<std::string>{"shop"});
  CHECK(has_context(scratch.path, "shop"));
  CHECK_FALSE(has_context(scratch.path, "sho"));
  Context context;
  REQUIRE(context_of_file(context_path(scratch.path, "shop"), context).ok());
  CHECK(context.group == "shop");
  CHECK(context.secret == secret);
  REQUIRE(context.places.size() == 3);
  REQUIRE(context.places[1]);
  CHECK(consensus::to_text(*context.places[1]) == "127.0.0.2:7100");
  CHECK(directory_of(scratch.path, "shop", denied) == scratch.path);
  REQUIRE(find_groups(scratch.path, denied).size() == 1);
  CHECK(is_only_elsewhere(find_groups(scratch.path, denied)[0]));
  fs::create_directories(scratch.path + "/shop/r0");
  CHECK_FALSE(is_only_elsewhere(find_groups(scratch.path, denied)[0]));
  fs::remove_all(scratch.path + "/shop");
  remove_context(scratch.path, "shop");
  CHECK(directory_of(scratch.path, "shop", denied).empty());
  CHECK(fs::is_empty(scratch.path));
  CHECK_FALSE(denied);
}

TEST_CASE("only its user can read a context", "[context]") {
  Scratch scratch;
  const mode_t before = ::umask(0);
  REQUIRE(write_context(scratch.path, shop(), std::string(64, 'a')).ok());
  ::umask(before);
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path)) {
    CHECK(mode_of(entry.path()) == (entry.is_directory() ? 0700U : 0600U));
  }
}

TEST_CASE("the context of one group outlives that of another", "[context]") {
  Scratch scratch;
  setup::GroupFile other = shop();
  other.name = "bank";
  REQUIRE(write_context(scratch.path, shop(), std::string(64, 'a')).ok());
  REQUIRE(write_context(scratch.path, other, std::string(64, 'b')).ok());
  remove_context(scratch.path, "shop");
  CHECK(has_context(scratch.path, "bank"));
}

TEST_CASE("hosts are named as for crane-run, with or without a port", "[context]") {
  Scratch scratch;
  const std::string secret = scratch.path + "/secret";
  {
    REQUIRE(write_context(scratch.path, shop(), std::string(64, 'a')).ok());
    fs::rename(scratch.path + "/.contexts/shop.secret", secret);
  }
  Context context;
  REQUIRE(context_of_hosts("127.0.0.1:7200,127.0.0.2,me@x=127.0.0.3:7300", secret, context).ok());
  REQUIRE(context.places.size() == 3);
  CHECK(consensus::to_text(*context.places[0]) == "127.0.0.1:7200");
  CHECK(consensus::to_text(*context.places[1]) == "127.0.0.2:7100");
  CHECK(consensus::to_text(*context.places[2]) == "127.0.0.3:7300");
  CHECK_FALSE(context_of_hosts("127.0.0.1:x,127.0.0.2,127.0.0.3", secret, context).ok());
  CHECK_FALSE(context_of_hosts("127.0.0.1,127.0.0.2,127.0.0.3", secret + "x", context).ok());
}

TEST_CASE("a group whose nodes have no ports has no context", "[context]") {
  Scratch scratch;
  setup::GroupFile file = shop();
  file.fabric = "shm";
  for (auto& replica : file.replicas) replica.port = 0;
  REQUIRE(write_context(scratch.path, file, std::string(64, 'a')).ok());
  Context context;
  CHECK_FALSE(context_of_file(context_path(scratch.path, "shop"), context).ok());
}
