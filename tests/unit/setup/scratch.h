// SPDX-License-Identifier: Apache-2.0
#pragma once
// A directory of a test, with files of given modes; it is removed at the test's end.

#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace crane::setup {

struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/crane-setup-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name, const std::string& text, mode_t mode) const {
    const std::string whole = path + "/" + name;
    std::ofstream(whole) << text;
    REQUIRE(chmod(whole.c_str(), mode) == 0);
    return whole;
  }
};

}  // namespace crane::setup
