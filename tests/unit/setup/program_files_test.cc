// SPDX-License-Identifier: Apache-2.0
// GOAL    Replicas on several hosts are refused if the files that the server loads differ, and the
//         file is reported.
// METHOD  Programs and scripts of this machine; lists with another build, with one file more or
//         less.
#include "runtime/setup/program_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

using namespace crane::setup;

namespace {

bool has(const std::vector<ProgramFile>& files, const std::string& end) {
  return std::any_of(files.begin(), files.end(), [&end](const ProgramFile& file) {
    return file.path.ends_with(end) && file.digest != 0;
  });
}

}  // namespace

TEST_CASE("program files: the list has a program, its libraries and the loader", "[setup]") {
  const auto files = program_files("/usr/bin/env");
  CHECK(files.front().path == "/usr/bin/env");
  CHECK(has(files, "/libc.so.6"));
  CHECK(has(files, "/ld-linux-x86-64.so.2"));
}

TEST_CASE("program files: a script has those of its interpreter", "[setup]") {
  char directory[] = "/tmp/crane-it's a script-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::string script = std::string(directory) + "/server";
  std::ofstream(script) << "#!/bin/sh -e\n";
  const auto files = program_files(script);
  CHECK(files.front().path == script);
  CHECK(files.at(1).path == "/bin/sh");
  CHECK(has(files, "/libc.so.6"));
  unlink(script.c_str());
  rmdir(directory);
}

TEST_CASE("program files: the first difference is reported", "[setup]") {
  const std::vector<ProgramFile> first{{"/s", 1}, {"/lib/a", 2}, {"/lib/b", 3}};
  CHECK(difference_of(first, first).empty());
  CHECK(difference_of(first, {{"/s", 1}, {"/lib/b", 3}, {"/lib/a", 2}}).empty());
  CHECK(difference_of(first, {{"/s", 1}, {"/lib/a", 2}, {"/lib/b", 4}}) ==
        "/lib/b is another build than on ");
  CHECK(difference_of(first, {{"/s", 1}, {"/lib/a", 2}, {"/lib/b", 3}, {"/lib/c", 4}}) ==
        "/lib/c is loaded there, but not on ");
  CHECK(difference_of(first, {{"/s", 1}, {"/lib/a", 2}}) ==
        "/lib/b is not loaded there, but is on ");
}
