// SPDX-License-Identifier: Apache-2.0
// GOAL    get_criu.sh finds the mirrors that a system's apt uses, in any format of its sources.
// METHOD  Invented sources in a directory; the script prints the mirrors that it finds.
// CHECKS  Both formats; disabled sources, and those for security updates or without "main", are
//         ignored.
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace {

std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "re");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return text;
}

}  // namespace

TEST_CASE("get_criu: mirrors of both formats of apt's sources", "[get_criu]") {
  char path[] = "/tmp/crane-apt-XXXXXX";
  REQUIRE(mkdtemp(path) != nullptr);
  const fs::path etc = path;
  fs::create_directories(etc / "sources.list.d");
  const std::string ask = "bash checkpoint/get_criu.sh --mirrors " + etc.string();
  CHECK(output_of(ask).empty());
  std::ofstream(etc / "sources.list") << "# deb http://comment.example/debian bookworm main\n"
                                         "deb-src http://source.example/debian bookworm main\n"
                                         "deb http://other.example/x stable free\n"
                                         "deb http://fix.example/d bookworm-security main\n"
                                         "deb [signed-by=/k] http://one.example/d bookworm main\n"
                                         "deb http://two.example/d bookworm contrib main\n";
  CHECK(output_of(ask) == "http://one.example/d\nhttp://two.example/d\n");
  std::ofstream(etc / "sources.list.d/a.sources") << "Types: deb\n"
                                                     "URIs: http://off.example/d\n"
                                                     "Suites: bookworm\n"
                                                     "Enabled: no\n"
                                                     "\n"
                                                     "Types: deb\n"
                                                     "# a comment\n"
                                                     "URIs: http://three.example/d\n"
                                                     "Suites: bookworm bookworm-updates\n"
                                                     "\n"
                                                     "Types: deb\n"
                                                     "URIs: http://fix.example/d\n"
                                                     "Suites: bookworm-security\n";
  std::ofstream(etc / "sources.list.d/b.sources") << "URIs: http://four.example/d\n"
                                                     "Suites: trixie\n";
  CHECK(output_of(ask) ==
        "http://three.example/d\nhttp://four.example/d\nhttp://one.example/d\n"
        "http://two.example/d\n");
  fs::remove_all(etc);
}
