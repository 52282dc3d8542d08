// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/ground/next_objects.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runtime/preload/ground/real.h"

namespace crane {
namespace {

// The rows whose function libcrane.so finds without ld.so.
const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    const auto add = [&found](const char* name, const char* version) {
      if (!real::is_asked_of_loader(name, version)) found.emplace_back(name);
    };
#define INTERPOSE(kind, name, result, params, args, version) add(#name, version);
#define INTERPOSE_VOID(kind, name, params, args, version) add(#name, version);
#define INTERPOSE_NORETURN(kind, name, params, args, version) add(#name, version);
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  add(#name, version);
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version)
#define INTERPOSE_LATE(kind, name, result, params, args, version)
#define INTERPOSE_JUMP(kind, name, result, params, args, version) add(#name, version);
#define INTERPOSE_OWN(kind, name, result, params, args, version) add(#name, version);
#define INTERPOSE_SECOND(kind, name, function)
#include "runtime/preload/ground/interposed.def"
    return found;
  }();
  return all;
}

NextObjects& behind_this_program() {
  static NextObjects next;
  next.collect(reinterpret_cast<const void*>(&names));
  return next;
}

void* find(const NextObjects& next, const std::string& name) {
  return next.find(name.c_str(), gnu_hash(name.c_str()));
}

}  // namespace

TEST_CASE("next objects: each function of the table is found at the same address as by ld.so",
          "[runtime]") {
  const NextObjects& next = behind_this_program();
  std::size_t there = 0;
  for (const std::string& name : names()) {
    INFO(name);
    void* const by_loader = ::dlsym(RTLD_NEXT, name.c_str());
    CHECK(find(next, name) == by_loader);  // NEXT-1, REAL-1
    there += by_loader == nullptr ? 0 : 1;
  }
  CHECK(there > 300);
}

TEST_CASE("next objects: names that only ld.so can resolve are left to it", "[runtime]") {
  const NextObjects& next = behind_this_program();
  CHECK(find(next, "time") == nullptr);  // its code is selected when it is bound
  CHECK(find(next, "crane_names_nothing") == nullptr);
  NextObjects none;
  CHECK(find(none, "read") == nullptr);  // before collect()
}

TEST_CASE("next objects: the last object has none after it", "[runtime]") {
  NextObjects next;
  // ld.so itself is the last object that a program starts with.
  next.collect(reinterpret_cast<const void*>(::dlsym(RTLD_DEFAULT, "_dl_find_dso_for_object")));
  CHECK(find(next, "read") == nullptr);
}

TEST_CASE("next objects: names are hashed according to DT_GNU_HASH", "[runtime]") {
  STATIC_REQUIRE(gnu_hash("") == 0x1505);
  STATIC_REQUIRE(gnu_hash("printf") == 0x156b2bb8);
  STATIC_REQUIRE(gnu_hash("exit") == 0x7c967e3f);
}

}  // namespace crane
