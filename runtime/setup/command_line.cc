// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "dmt/base/join.h"
#include "runtime/setup/program_pages.h"
#include "runtime/setup/suggest.h"

namespace crane::setup {
namespace {

using Made = std::map<const Command*, CLI::App*>;

struct Declare {
  CLI::App& app;
  const char* names;

  template <typename Value>
  CLI::Option* operator()(Value* value) const {
    CLI::Option* const option = app.add_option(names, *value);
    // CLI11 takes -1 for the largest one.
    if constexpr (std::is_unsigned_v<Value>) {
      option->check([](const std::string& text) {
        return text.rfind('-', 0) == 0 ? text + " is negative" : std::string();
      });
    }
    return option;
  }
  CLI::Option* operator()(std::vector<std::string>* list) const {
    CLI::Option* const option = app.add_option(names, *list);
    return names[0] == '-' ? option->allow_extra_args(false) : option;
  }
  CLI::Option* operator()(const Word::Flag& flag) const {
    return app.add_flag_function(
        names, [flag](std::int64_t count) { *flag.value = count > 0 ? flag.typed : !flag.typed; });
  }
  CLI::Option* operator()(const Word::Setter& set) const {
    return app.add_option_function<std::string>(names, set);
  }
};

void declare(CLI::App& app, const Word& word) {
  CLI::Option* const option = std::visit(Declare{app, word.names}, word.target);
  const Word::Rules& rules = word.rules;
  option->required(rules.required)->description(help_of(word));
  if (word.help.empty()) option->group("");
  if (!rules.choices.empty()) option->check(CLI::IsMember(rules.choices));
  if (rules.bounds) option->check(CLI::Range(rules.bounds->first, rules.bounds->second));
  if (rules.is_file) option->check(CLI::ExistingFile);
  if (rules.is_last) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// REQUIRES: all words are declared.
void declare_rules(CLI::App& app, const Word& word) {
  CLI::Option* const option = app.get_option(names_of(word).back());
  for (const char* other : word.rules.needs) option->needs(app.get_option(other));
  for (const char* other : word.rules.excludes) option->excludes(app.get_option(other));
}

void declare(CLI::App& app, const Command& command, Made& made) {
  made[&command] = &app;
  for (const Word& word : command.words) declare(app, word);
  for (const Word& word : command.words) declare_rules(app, word);
  for (const Command& one : command.commands) {
    declare(*app.add_subcommand(one.name, one.help), one, made);
  }
  if (!command.commands.empty()) app.require_subcommand(1);
}

// Whether the first word is a command.  If another program's words may follow, only the first word
// can be one.
bool begins_with_command(const Command& program, int argc, const char* const* argv) {
  return argc > 1 && std::any_of(program.commands.begin(), program.commands.end(),
                                 [&](const Command& one) { return one.name == argv[1]; });
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& one : commands) names.push_back(one.name);
  return names;
}

// Whether the argument after `word` belongs to it.
bool takes_argument(const Command& command, const std::string& word) {
  const auto same = [&word](const Word& one) {
    const auto names = names_of(one);
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  const auto found = std::find_if(command.words.begin(), command.words.end(), same);
  return found != command.words.end() && !std::holds_alternative<Word::Flag>(found->target);
}

// Returns the number of this program's words; the others go into `rest`.
int cut_program(const Command& ours, int argc, const char* const* argv,
                std::vector<std::string>& rest) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--" || word.rfind('-', 0) != 0) {
      rest.assign(argv + i + (word == "--" ? 1 : 0), argv + argc);
      return i;
    }
    if (takes_argument(ours, word)) ++i;
  }
  return argc;
}

// Describes the first word that is not a command although a command must be there, or a missing
// command.  Returns "" if neither is the mistake.
std::string misused_command(const Command& program, int argc, const char* const* argv) {
  const Command* level = &program;
  for (int i = 1; i < argc && !level->commands.empty(); ++i) {
    const std::string word = argv[i];
    if (takes_argument(program, word)) ++i;
    if (word.rfind('-', 0) == 0) continue;
    const auto known = std::find_if(level->commands.begin(), level->commands.end(),
                                    [&word](const Command& one) { return one.name == word; });
    if (known == level->commands.end()) return unknown_command(word, names_of(level->commands));
    level = &*known;
  }
  if (level->commands.empty()) return "";
  return (level == &program ? "a command is missing: " : level->name + " what: ") +
         joined(names_of(level->commands));
}

void collect_options(const Command& command, std::vector<std::string>& names) {
  for (const Word& word : command.words) {
    for (const std::string& name : names_of(word)) {
      if (name[0] == '-') names.push_back(name);
    }
  }
  for (const Command& one : command.commands) collect_options(one, names);
}

// Describes the first option that no command has; "" if there is none.
std::string unknown_option(const Command& program, int argc, const char* const* argv) {
  std::vector<std::string> known = {"--help", "-h", "--version"};
  collect_options(program, known);
  for (int i = 1; i < argc; ++i) {
    const std::string typed = argv[i], word = typed.substr(0, typed.find('='));
    if (word.rfind("--", 0) != 0) continue;  // short options may be combined, or be a number
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string near = nearest(word, known);
    return "no such option " + word + (near.empty() ? "" : "; did you mean " + near + "?");
  }
  return "";
}

// CLI11 names the value that is no number as in "Could not convert: --name = value".
std::string text_of(const CLI::ParseError& error) {
  constexpr std::string_view kBegin = "Could not convert: ", kBetween = " = ";
  const std::string text = error.what();
  const auto between = text.find(kBetween);
  if (text.rfind(kBegin, 0) != 0 || between == std::string::npos) return text;
  return text.substr(kBegin.size(), between - kBegin.size()) + ": " +
         text.substr(between + kBetween.size()) + " is not a number in range";
}

}  // namespace

std::vector<std::string> names_of(const Word& word) {
  std::vector<std::string> names;
  std::istringstream parts(word.names);
  for (std::string name; std::getline(parts, name, ',');) names.push_back(name);
  return names;
}

std::string help_of(const Word& word) {
  std::string help = word.help;
  const auto put = [&](const auto& target) {
    if constexpr (requires { std::to_string(*target); }) {
      help.replace(help.find("{}"), 2, std::to_string(*target));
    }
  };
  if (help.find("{}") != std::string::npos) std::visit(put, word.target);
  return help;
}

CommandLine::Parsed CommandLine::parse(int argc, const char* const* argv) {
  const Command& top = program_.command;
  if (argc == 3 && std::string_view(argv[1]) == "--print-page") {
    if (const auto page = page_of(program_, argv[2])) {
      std::fputs(page->c_str(), stdout);
      return Parsed::kShown;
    }
  }
  CLI::App app{top.help};
  app.name(top.name);
  app.set_version_flag("--version", program_.version);
  app.footer(program_.footer);
  const bool ends = program_.ends_at_program;
  const bool has_command = !ends || begins_with_command(top, argc, argv);
  if (!ends && !top.commands.empty()) app.fallthrough();
  if (!has_command) argc = cut_program(top, argc, argv, rest_);
  Made made;
  declare(app, top, made);
  if (ends) app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {  // --help, --version
    app.exit(shown);
    return Parsed::kShown;
  } catch (const CLI::ParseError& error) {
    if (has_command) mistake_ = misused_command(top, argc, argv);
    if (mistake_.empty()) mistake_ = unknown_option(top, argc, argv);
    if (mistake_.empty()) mistake_ = text_of(error);
    return Parsed::kMistake;
  }
  for (const auto& [command, parsed] : made) {
    if (command != &top && command->commands.empty() && parsed->parsed()) command_ = command;
    for (const CLI::Option* option : parsed->get_options()) {
      if (option->count() == 0) continue;
      for (const std::string& name : option->get_lnames()) typed_.insert("--" + name);
      for (const std::string& name : option->get_snames()) typed_.insert("-" + name);
    }
  }
  return Parsed::kRun;
}

std::optional<int> CommandLine::status_after(int argc, const char* const* argv, int mistake_status,
                                             const Report& report) {
  switch (parse(argc, argv)) {
    case Parsed::kRun:
      return std::nullopt;
    case Parsed::kShown:
      return 0;
    case Parsed::kMistake:
      break;
  }
  report(mistake_);
  return mistake_status;
}

std::vector<std::string> split_words(const std::string& line) {
  return CLI::detail::split_up(line);
}

}  // namespace crane::setup
