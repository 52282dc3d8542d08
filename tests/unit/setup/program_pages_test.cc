// SPDX-License-Identifier: Apache-2.0
// Manual page and completion follow the table of options.
#include "runtime/setup/program_pages.h"

#include <catch2/catch.hpp>
#include <string>

using namespace crane::setup;

namespace {

struct Tool {
  std::string color, group;
  int count = 0;
  bool quiet = false;
  Program program{{"crane-tool",
                   "A tool.",
                   {{"-q,--quiet", Word::Flag{&quiet}, "say nothing"},
                    {"--color", &color, ".dots and -dashes", {.choices = {"red", "green"}}},
                    {"--hidden", &count, ""}},
                   {{"member",
                     "members",
                     {},
                     {{"add",
                       "one more",
                       {{"--count", &count, "how many"}, {"group", &group, "which"}},
                       {},
                       [] { return 0; }}}}}},
                  "Crane 1.2.3, commit 0",
                  "Exit status: 0"};
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a manual page has each option and command with its help", "[program_pages]") {
  const Tool tool;
  const std::string page = man_page(tool.program);
  CHECK(has(page, ".TH CRANE-TOOL 1 \"\" \"Crane 1.2.3\""));
  CHECK(has(page, "crane\\-tool \\- A tool\n"));
  CHECK(has(page, "\\fB\\-q \\-\\-quiet\\fR\nsay nothing\n"));
  CHECK(has(page, "\\fB\\-\\-color\\fR \\fIred|green\\fR\n\\&.dots and \\-dashes\n"));
  CHECK(has(page, ".SS member add\none more\n"));
  CHECK(has(page, "\\fB\\-\\-count\\fR \\fIN\\fR\nhow many\n"));
  CHECK(has(page, "\\fB[GROUP]\\fR\nwhich\n"));
  CHECK(has(page, "Exit status: 0"));
  CHECK_FALSE(has(page, "hidden"));
}

TEST_CASE("completion offers the possible next words", "[program_pages]") {
  const Tool tool;
  const std::string bash = bash_completion(tool.program), zsh = zsh_completion(tool.program);
  CHECK(has(bash, "'') mapfile -t COMPREPLY < <(compgen -W 'member --quiet --color --help"));
  CHECK(has(bash, "' member') mapfile -t COMPREPLY < <(compgen -W 'add --quiet --color --help"));
  CHECK(has(bash, "--color) mapfile -t COMPREPLY < <(compgen -W 'red green'"));
  CHECK(has(zsh, "#compdef crane-tool\n"));
  CHECK(has(zsh, "' member add') compadd -- --count --quiet --color"));
  CHECK_FALSE(has(bash + zsh, "hidden"));
  CHECK_FALSE(page_of(tool.program, "html"));
}

TEST_CASE("a program that runs another one may have its own commands", "[program_pages]") {
  Tool tool;
  tool.program.ends_at_program = true;
  const std::string page = man_page(tool.program), bash = bash_completion(tool.program);
  CHECK(has(page, "[\\fIoptions\\fR] \\-\\- \\fIprogram\\fR [\\fIargument\\fR ...]\n.br\n"));
  CHECK(has(page, "\\fBcrane\\-tool\\fR \\fIcommand\\fR ..."));
  CHECK(has(page, ".SS member add\none more\n"));
  CHECK(has(bash, "'') mapfile -t COMPREPLY < <(compgen -W 'member --quiet --color --help"));
  CHECK(has(bash, "' member add') mapfile -t COMPREPLY < <(compgen -W '--count --help --version'"));
}
