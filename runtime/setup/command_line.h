// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program's command line as a table: its words, what they set, their bounds and their help, and
// the commands below it.  Every program of Crane has one; --help, --version and the messages about
// mistakes come from it.
//
// Threads: one.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace crane::setup {

struct Word {
  struct Flag {
    bool* value;
    bool typed = true;  // what it is set to
  };
  using Setter = std::function<void(const std::string& text)>;
  // A list takes one text each time that its word is typed; one that stands by its place takes all.
  using Target = std::variant<std::string*, int*, std::uint16_t*, std::uint32_t*, std::uint64_t*,
                              std::int64_t*, std::vector<std::string>*, Flag, Setter>;
  struct Rules {
    std::vector<std::string> choices = {};
    std::optional<std::pair<std::int64_t, std::int64_t>> bounds = {};  // of a number
    bool required = false;
    bool is_file = false;                    // which exists
    bool is_last = false;                    // typed several times, the last one counts
    std::vector<const char*> needs = {};     // other words, without which it makes no sense
    std::vector<const char*> excludes = {};  // and with which
  };

  const char* names;  // "-o,--output"; without dashes it stands by its place
  Target target;
  std::string help;  // empty: --help does not show it; {}: the number that is the default
  Rules rules = {};
};

// Its help before anything is parsed, when its target is the default.
std::string help_of(const Word& word);
// "-o,--output": each of them.
std::vector<std::string> names_of(const Word& word);

struct Command {
  std::string name, help;
  std::vector<Word> words = {};
  std::vector<Command> commands = {};  // if there are any, one of them must be typed
  std::function<int()> run = {};       // of a command that has none below it
};

struct Program {
  Command command;
  std::string version;  // of --version
  std::string footer;   // of --help
  // What follows "--", or the first word by its place, is another program's: rest() has it.  A
  // command of ours then is the first word of all, and has none of the program's own options.
  bool ends_at_program = false;
};

class CommandLine {
 public:
  enum class Parsed { kRun, kShown, kMistake };

  // `program` outlives it.
  explicit CommandLine(const Program& program) : program_(program) {}

  // kShown: --help, --version or --print-page was typed, and printed.  kMistake: mistake() says
  // which, without the name of the program.
  Parsed parse(int argc, const char* const* argv);
  // The same for a program that ends otherwise: its status, after `report` was told a mistake;
  // nullopt: go on.
  using Report = std::function<void(const std::string& mistake)>;
  std::optional<int> status_after(int argc, const char* const* argv, int mistake_status,
                                  const Report& report);
  const std::string& mistake() const noexcept { return mistake_; }
  // Whether an option was typed.  `name`: one of its names.
  bool typed(const std::string& name) const { return typed_.count(name) > 0; }
  // The command that was typed; nullptr: none.
  const Command* command() const noexcept { return command_; }
  // ends_at_program: the other program's words.
  const std::vector<std::string>& rest() const noexcept { return rest_; }

 private:
  const Program& program_;
  std::string mistake_;
  std::set<std::string> typed_;
  const Command* command_ = nullptr;
  std::vector<std::string> rest_;
};

// The words of a shell's line: blanks part them, quotes hold them together.
std::vector<std::string> split_words(const std::string& line);

}  // namespace crane::setup
