// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program's command line as a table: its options, their targets, bounds and help, and the
// program's commands.  Every program of Crane has such a table; --help, --version and the messages
// about mistakes use it.
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
    bool typed = true;  // the value after the flag was typed
  };
  using Setter = std::function<void(const std::string& text)>;
  // A list option takes one text each time that it is typed; a positional list takes all.
  using Target = std::variant<std::string*, int*, std::uint16_t*, std::uint32_t*, std::uint64_t*,
                              std::int64_t*, std::vector<std::string>*, Flag, Setter>;
  struct Rules {
    std::vector<std::string> choices = {};
    std::optional<std::pair<std::int64_t, std::int64_t>> bounds = {};  // of a number
    bool required = false;
    bool is_file = false;                    // an existing file
    bool is_last = false;                    // if typed several times, the last one counts
    std::vector<const char*> needs = {};     // required other words
    std::vector<const char*> excludes = {};  // forbidden other words
  };

  const char* names;  // "-o,--output"; without dashes: a positional argument
  Target target;
  std::string help;  // empty: hidden in --help; {}: place of the default number
  Rules rules = {};
};

// The word's help with its default.  REQUIRES: nothing was parsed yet, so the target still holds
// the default.
std::string help_of(const Word& word);
// Splits "-o,--output" into its names.
std::vector<std::string> names_of(const Word& word);

struct Command {
  std::string name, help;
  std::vector<Word> words = {};
  std::vector<Command> commands = {};  // subcommands; if any, one must be typed
  std::function<int()> run = {};       // of a command without subcommands
};

struct Program {
  Command command;
  std::string version;  // output of --version
  std::string footer;   // last text of --help
  // If true, "--" or the first positional word begins another program's command line, which rest()
  // returns.  Then a command of this program must be its first word, and the options of the program
  // itself are not allowed with it.
  bool ends_at_program = false;
};

class CommandLine {
 public:
  enum class Parsed { kRun, kShown, kMistake };

  // REQUIRES: `program` outlives this object.
  explicit CommandLine(const Program& program) : program_(program) {}

  // kShown: --help, --version or --print-page was typed, and its output was printed.  kMistake:
  // mistake() describes it, without the name of the program.
  Parsed parse(int argc, const char* const* argv);
  // Parses and returns the status with which the program shall end, or nullopt if it shall run.
  // Calls `report` with a mistake first.
  using Report = std::function<void(const std::string& mistake)>;
  std::optional<int> status_after(int argc, const char* const* argv, int mistake_status,
                                  const Report& report);
  const std::string& mistake() const noexcept { return mistake_; }
  // Whether an option was typed.  `name` is any of its names.
  bool typed(const std::string& name) const { return typed_.count(name) > 0; }
  // The typed command; nullptr: none.
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

// Splits a line into words as a shell does: at blanks outside of quotes.
std::vector<std::string> split_words(const std::string& line);

}  // namespace crane::setup
