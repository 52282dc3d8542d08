// SPDX-License-Identifier: Apache-2.0
// GOAL    Each finding that valgrind reports in a server is reported once, in a line with its
//         place.
// METHOD  Output as valgrind 3.19 writes it, whole and cut at every byte.
#include "proxy/analysis/findings.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "proxy/analysis/analysis_status.h"

using namespace crane::node;

namespace {

std::string race(const char* process, const char* thread, const char* address) {
  const std::string mark = std::string("==") + process + "== ";
  return mark + "----------------------------------------------------------------\n" + mark + "\n" +
         mark + "Possible data race during read of size 8 at " + address + " by thread #" + thread +
         "\n" + mark + "Locks held: none\n" + mark +
         "   at 0x4A53D54: mythread_wrapper (hg_intercepts.c:398)\n" + mark +
         "   by 0x109398: work (server.c:24)\n" + mark + "   by 0x1095AA: serve (server.c:52)\n" +
         mark + "\n" + mark + "This conflicts with a previous write of size 8 by thread #2\n" +
         mark + "Locks held: none\n" + mark + "   at 0x109111: other (server.c:99)\n" + mark +
         " Address " + address + " is 0 bytes inside data symbol \"planted\"\n" + mark + "\n";
}

const char* const kInvalid =
    "==7== Invalid read of size 4\n"
    "==7==    at 0x10916E: parse (parse.c:7)\n"
    "==7==    by 0x109190: main (main.c:3)\n"
    "==7==  Address 0x4a8f040 is 0 bytes after a block of size 16 alloc'd\n"
    "==7==    at 0x48417B4: malloc (vg_replace_malloc.c:381)\n"
    "==7== \n";

const std::string kRace = "Possible data race during read of size 8 at work (server.c:24)";

}  // namespace

TEST_CASE("findings: a finding is one line with its kind and its place in the server",
          "[analysis]") {
  Findings f;
  f.take("a line of the server's own\n==x== no\n==7 == no\n" + race("12", "3", "0x10C0E8"));
  CHECK(f.fresh() == std::vector<std::string>{kRace + ", called from serve (server.c:52)"});
  f.take(kInvalid);
  CHECK(f.fresh() ==
        std::vector<std::string>{
            "Invalid read of size 4 at parse (parse.c:7), called from main (main.c:3)"});
  CHECK(f.fresh().empty());
  CHECK(f.count() == 2);
  CHECK(f.reports() == 2);
}

TEST_CASE("findings: the same place is reported once, for all threads and processes",
          "[analysis]") {
  Findings f;
  f.take(race("12", "3", "0x10C0E8") + race("12", "4", "0x10C0F0") + race("13", "3", "0x10C0E8"));
  CHECK(f.fresh().size() == 1);
  CHECK(f.count() == 1);
  CHECK(f.reports() == 3);
}

TEST_CASE("findings: interleaved output of two processes is separated", "[analysis]") {
  Findings f;
  f.take(
      "==1== Possible data race during write of size 8 at 0x1 by thread #3\n"
      "==2== Invalid write of size 2\n"
      "==1==    at 0x109398: one (a.c:1)\n"
      "==2==    at 0x109398: two (b.c:2)\n"
      "==1== \n==2== \n");
  CHECK(f.fresh() ==
        std::vector<std::string>{"Possible data race during write of size 8 at one (a.c:1)",
                                 "Invalid write of size 2 at two (b.c:2)"});
}

TEST_CASE("findings: output cut at any byte gives the same findings", "[analysis]") {
  const std::string all = "server\n" + race("12", "3", "0x10C0E8") + "more\n" + kInvalid;
  Findings whole;
  whole.take(all);
  const auto expected = whole.fresh();
  const std::string report = whole.report();
  CHECK(report.find("server\n") == std::string::npos);
  REQUIRE(expected.size() == 2);
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    Findings f;
    f.take(std::string_view(all).substr(0, cut));
    f.take(std::string_view(all).substr(cut));
    REQUIRE(f.fresh() == expected);
    REQUIRE(f.report() == report);
  }
}

TEST_CASE("findings: neither an unended line nor an endless series of findings fills the memory",
          "[analysis]") {
  Findings f;
  f.take("==1== ");
  for (int i = 0; i < 10; ++i) f.take(std::string(20'000, 'x'));
  f.take("\n");
  CHECK(f.report().size() < 70'000);
  std::size_t reported = 0;
  for (int i = 0; i < 100'100; ++i) {
    const std::string number = std::to_string(i);
    f.take("==1== Invalid read of size 4\n==1==    at 0x1: f" + number + " (a.c:1)\n==1== \n");
    reported += f.fresh().size();
    f.report();
  }
  CHECK(reported == 100'000);
  CHECK(f.count() == 100'000);
  CHECK(f.reports() == 100'100);
}

TEST_CASE("analysis: the status contains the engine's reports, and each finding is reported once",
          "[analysis]") {
  using Json = nlohmann::json;
  AnalysisStatus s;
  s.tool = "helgrind";
  s.report = "/r/report.txt";
  s.got = 90;
  CHECK(apply_message(s, Json{{"t", "progress"},
                              {"entry", 40},
                              {"digests", 3},
                              {"equal_to", 31},
                              {"findings", 1},
                              {"reports", 5}})
            .empty());
  CHECK(apply_message(s, Json{{"t", "finding"}, {"number", 1}, {"text", kRace}}) ==
        "helgrind finding 1: " + kRace + "; report: /r/report.txt");
  Json j = to_json(s);
  CHECK(j["behind"] == 50);
  CHECK(j["findings"] == 1);
  CHECK(j["reports"] == 5);
  CHECK(j["first_findings"] == Json::array({kRace}));
  CHECK(j["equal_to"] == 31);
  CHECK(j["differs"].is_null());
  CHECK(j["ended"] == "");
  const std::string news =
      apply_message(s, Json{{"t", "differs"}, {"index", 35}, {"text", "here clock 4"}});
  CHECK(news.find("differs from the group's from entry 35 on (here clock 4)") != std::string::npos);
  j = to_json(s);
  CHECK(j["differs"]["index"] == 35);
  CHECK(apply_message(s, Json{{"t", "end"}, {"status", 1}, {"text", ""}}) ==
        "it has run all stored entries, up to entry 40");
  CHECK(apply_message(s, Json{{"t", 7}}).empty());
  CHECK(apply_message(s, Json{{"t", "progress"}, {"entry", "x"}}).empty());
  CHECK(s.entry == 0);
  for (int i = 2; i < 20; ++i)
    apply_message(s, Json{{"t", "finding"}, {"number", i}, {"text", "x"}});
  CHECK(s.findings == 19);
  CHECK(s.first.size() == kFindingsShown);
}
