// SPDX-License-Identifier: Apache-2.0
// The table of interposed functions as data: every row names a function of this libc in the given
// version, once, with a known kind.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/preload/ground/operations.h"

namespace crane {
namespace {

struct Row {
  const char *kind, *name, *version;
  bool is_of_libc;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#define INTERPOSE(kind, name, result, params, args, version) {#kind, #name, version, true},
#define INTERPOSE_VOID(kind, name, params, args, version) {#kind, #name, version, true},
#define INTERPOSE_NORETURN(kind, name, params, args, version) {#kind, #name, version, true},
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  {#kind, #name, version, true},
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version) \
  {#kind, #name, version, true},
#define INTERPOSE_JUMP(kind, name, result, params, args, version) {#kind, #name, version, true},
#define INTERPOSE_OWN(kind, name, result, params, args, version) {#kind, #name, version, true},
#define INTERPOSE_LATE(kind, name, result, params, args, version) {#kind, #name, version, false},
#define INTERPOSE_SECOND(kind, name, function)
#include "runtime/preload/ground/interposed.def"
  };
  return all;
}

}  // namespace

TEST_CASE("every row of the table names a function of libc in its version") {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(libc != nullptr);
  for (const Row& row : rows()) {
    if (!row.is_of_libc) continue;
    INFO(row.name << " " << row.version);
    if (row.version[0] != '\0') {
      CHECK(dlvsym(libc, row.name, row.version) != nullptr);
    } else {
      // Names that only old binaries use have no default version.
      CHECK((dlsym(libc, row.name) != nullptr || dlvsym(libc, row.name, "GLIBC_2.2.5") != nullptr));
    }
  }
}

TEST_CASE("no function has two rows, and every kind is known") {
  const std::set<std::string> kinds = {"turn",    "input", "time",   "random",
                                       "process", "local", "refused"};
  std::set<std::string> names;
  for (const Row& row : rows()) {
    INFO(row.name);
    CHECK(kinds.count(row.kind) == 1);
    CHECK(names.insert(row.name).second);
  }
  CHECK(static_cast<std::size_t>(Op::kThreadStart) == rows().size() + 1);
}

TEST_CASE("condition variables have the version that current binaries use") {
  for (const Row& row : rows()) {
    const std::string name = row.name;
    if (name == "pthread_cond_wait" || name == "pthread_cond_signal") {
      CHECK(std::string(row.version) == "GLIBC_2.3.2");
    }
  }
}

}  // namespace crane
