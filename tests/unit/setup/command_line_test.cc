// SPDX-License-Identifier: Apache-2.0
// UNIT    runtime/setup/command_line.h
// GOAL    A command line follows its table: typed options are set, and each mistake is reported.
// CHECKS  Every kind of target, bounds, choices, needs and excludes, commands with options of their
//         own and of the program, words after the server's name, quotes in split_words().
#include "runtime/setup/command_line.h"

#include <catch2/catch.hpp>

using namespace crane::setup;
using Parsed = CommandLine::Parsed;

namespace {

struct Values {
  std::string text, choice = "a", dir, name;
  int number = 0;
  std::uint64_t large = 0;
  std::vector<std::string> list, program;
  bool flag = false, on = true;
  std::string ran;
};

std::vector<Word> words_of(Values& v) {
  return {
      {"-t,--text", &v.text, "any text"},
      {"--choice", &v.choice, "a or b", {.choices = {"a", "b"}}},
      {"--number", &v.number, "0 to 9", {.bounds = {{0, 9}}}},
      {"--large", &v.large, "any number"},
      {"--list", &v.list, "several"},
      {"--flag", Word::Flag{&v.flag}, "on"},
      {"--off", Word::Flag{&v.on, false}, "off"},
      {"--set", Word::Setter{[&v](const std::string& text) { v.ran = text; }}, "calls"},
      {"--needs", Word::Flag{&v.flag}, "with --text", {.needs = {"--text"}}},
      {"--not", Word::Flag{&v.flag}, "without --text", {.excludes = {"--text"}}},
      {"--hidden", &v.name, ""},
  };
}

Parsed parse(CommandLine& line, std::vector<const char*> words) {
  words.insert(words.begin(), "prog");
  return line.parse(static_cast<int>(words.size()), words.data());
}

Program program_of(Values& v) { return {{"prog", "does it", words_of(v)}, "1", ""}; }

// Returns the reported mistake; empty: there is none.
std::string mistake(const std::vector<const char*>& words) {
  Values v;
  const Program program = program_of(v);
  CommandLine line(program);
  return parse(line, words) == Parsed::kMistake ? line.mistake() : "";
}

Program commands_of(Values& v) {
  Program program{{"prog", "steers it", {{"--dir", &v.dir, "where"}}}, "1", ""};
  program.command.commands = {{"look",
                               "only looks",
                               {{"name", &v.name, "whom"}},
                               {},
                               [&v] {
                                 v.ran = "look";
                                 return 3;
                               }},
                              {"do",
                               "does",
                               {},
                               {{"this",
                                 "one thing",
                                 {{"number", &v.number, "how often", {.required = true}}},
                                 {},
                                 [&v] {
                                   v.ran = "this";
                                   return 4;
                                 }},
                                {"that", "another", {}, {}, [&v] {
                                   v.ran = "that";
                                   return 5;
                                 }}}}};
  return program;
}

}  // namespace

TEST_CASE("command line: every kind of option sets its target", "[setup]") {
  Values v;
  const Program program = program_of(v);
  CommandLine line(program);
  REQUIRE(
      parse(line, {"-t", "x y", "--choice", "b", "--number=7", "--large", "18446744073709551615",
                   "--list", "1", "--list", "2", "--flag", "--off", "--set", "s"}) == Parsed::kRun);
  CHECK((v.text == "x y" && v.choice == "b" && v.number == 7 && v.large == UINT64_MAX));
  CHECK(v.list == std::vector<std::string>{"1", "2"});
  CHECK((v.flag && !v.on && v.ran == "s"));
  CHECK((line.typed("--text") && line.typed("-t") && line.typed("--off")));
  CHECK_FALSE(line.typed("--needs"));
  CHECK(line.command() == nullptr);
}

TEST_CASE("command line: each mistake is reported", "[setup]") {
  CHECK(mistake({}).empty());
  CHECK(mistake({"--number", "10"}).find("--number") != std::string::npos);
  CHECK(mistake({"--number", "x"}).find("--number") != std::string::npos);
  CHECK(mistake({"--large", "x"}) == "--large: x is not a number in range");
  CHECK(mistake({"--choice", "c"}).find("--choice") != std::string::npos);
  CHECK(mistake({"--large", "-1"}).find("--large") != std::string::npos);
  CHECK(mistake({"--needs"}).find("--text") != std::string::npos);
  CHECK(mistake({"--needs", "--text", "x"}).empty());
  CHECK(mistake({"--not", "--text", "x"}).find("--text") != std::string::npos);
  CHECK(mistake({"--wrong"}) == "no such option --wrong");
  CHECK(mistake({"--numbr=3"}) == "no such option --numbr; did you mean --number?");
  CHECK(mistake({"odd"}).find("odd") != std::string::npos);
}

TEST_CASE("command line: a command has its own options and those of the program", "[setup]") {
  Values v;
  const Program program = commands_of(v);
  CommandLine line(program);
  REQUIRE(parse(line, {"do", "this", "8", "--dir", "d"}) == Parsed::kRun);
  CHECK((v.number == 8 && v.dir == "d" && line.command()->name == "this"));
  CHECK((line.command()->run() == 4 && v.ran == "this"));
  const auto wrong = [](const std::vector<const char*>& words) {
    Values ignored;
    const Program again = commands_of(ignored);
    CommandLine other(again);
    return parse(other, words) == Parsed::kMistake ? other.mistake() : "";
  };
  CHECK(wrong({"lok"}) == "unknown command 'lok'; did you mean 'look'?");
  CHECK(wrong({"--dir", "d", "do", "thus"}) == "unknown command 'thus'; did you mean 'this'?");
  CHECK(wrong({}) == "a command is missing: look, do");
  CHECK(wrong({"do"}) == "do what: this, that");
  CHECK(wrong({"do", "this"}).find("number") != std::string::npos);
}

TEST_CASE("command line: the words after the server's name belong to the server", "[setup]") {
  const auto rest = [](const std::vector<const char*>& words, bool& flag) {
    Values v;
    Program program = program_of(v);
    program.command.words.push_back({"program", &v.program, "the server"});
    program.ends_at_program = true;
    CommandLine line(program);
    REQUIRE(parse(line, words) == Parsed::kRun);
    flag = v.flag;
    return line.rest();
  };
  bool flag = false;
  const std::vector<std::string> server = {"server", "--flag", "7", "--", "-t"};
  CHECK(rest({"--text", "x", "server", "--flag", "7", "--", "-t"}, flag) == server);
  CHECK_FALSE(flag);
  CHECK(rest({"-t", "x", "--flag", "--number=1", "--", "server", "--flag", "7", "--", "-t"},
             flag) == server);
  CHECK(flag);
  CHECK(rest({"--flag"}, flag).empty());
}

TEST_CASE("command line: quotes keep words together", "[setup]") {
  CHECK(split_words("ssh -o 'A B' host") == std::vector<std::string>{"ssh", "-o", "A B", "host"});
}
